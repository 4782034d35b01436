export type Theme = 'auto' | 'light' | 'dark'
const STORED = 'windlass.theme'

export const theme = $state<{ chosen: Theme }>({ chosen: 'auto' })

export function chooseTheme(chosen: Theme) {
  theme.chosen = chosen
  localStorage.setItem(STORED, chosen)
  if (chosen === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = chosen
}

export function startTheme() {
  const stored = localStorage.getItem(STORED)
  chooseTheme(stored === 'light' || stored === 'dark' ? stored : 'auto')
}
