import { en, type Key, type Texts } from '../locales/en'
import { showHidden } from './ansi'
import { stored } from './stored'

export type Locale = 'en' | 'zh'
export type Values = Record<string, string | number>

/** Fills in `{name}`, with hidden characters made visible. Of `one|many`, takes the first text if `n` is 1. */
export function fill(text: string, values: Values): string {
  const forms = text.split('|')
  const form = forms.length > 1 && values.n === 1 ? forms[0]! : forms.at(-1)!
  return form.replace(/\{(\w+)\}/g, (whole, name: string) => showHidden(String(values[name] ?? whole)))
}

const STORED = 'windlass.locale'

class I18n {
  locale = $state<Locale>('en')
  #texts = $state.raw<Texts>(en)

  /** Loads the language that was chosen here before, or that the browser prefers. */
  start() {
    return this.#load((stored.get(STORED) ?? navigator.language).startsWith('zh') ? 'zh' : 'en')
  }

  choose(locale: Locale) {
    stored.set(STORED, locale)
    return this.#load(locale)
  }

  text = (key: Key, values: Values = {}): string => fill(this.#texts[key] ?? en[key] ?? key, values)

  async #load(locale: Locale) {
    this.#texts = locale === 'zh' ? (await import('../locales/zh')).zh : en
    this.locale = locale
    document.documentElement.lang = locale === 'zh' ? 'zh-CN' : 'en'
  }
}

export const i18n = new I18n()
export const t = i18n.text

/** The text of a value that the server may extend: another text, or the value itself, if the page does not know it. */
export function tOr(prefix: string, value: string, values: Values = {}, other = value): string {
  const key = `${prefix}.${value}`
  return key in en ? t(key as Key, values) : showHidden(other)
}
