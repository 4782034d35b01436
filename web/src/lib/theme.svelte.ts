import { stored } from './stored'

export type Theme = 'auto' | 'light' | 'dark'
const STORED = 'windlass.theme'

export const theme = $state<{ chosen: Theme }>({ chosen: 'auto' })

export function chooseTheme(chosen: Theme) {
  theme.chosen = chosen
  stored.set(STORED, chosen)
  if (chosen === 'auto') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = chosen
}

export function startTheme() {
  const before = stored.get(STORED)
  chooseTheme(before === 'light' || before === 'dark' ? before : 'auto')
}
