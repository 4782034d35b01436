/** Keys that work on every page. They can be switched off, for people who use speech input. */

import { router } from './router.svelte'
import { stored } from './stored'

const STORED = 'windlass.shortcuts'
const GO: Record<string, string> = { d: 'deployments', r: 'runs', s: 'sessions', t: 'tokens', a: 'audit' }
const SECOND_KEY_MS = 1500

class Shortcuts {
  on = $state(stored.get(STORED) !== 'off')
  #goUntil = 0

  choose(on: boolean) {
    this.on = on
    stored.set(STORED, on ? 'on' : 'off')
  }

  handle(event: KeyboardEvent, showHelp: () => void) {
    const { target } = event
    const isTyping = target instanceof HTMLElement && target.closest('input, select, textarea, [contenteditable]')
    if (!this.on || isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return
    const going = event.timeStamp < this.#goUntil
    this.#goUntil = 0
    if (going && GO[event.key]) router.go([GO[event.key]!])
    else if (event.key === 'g') this.#goUntil = event.timeStamp + SECOND_KEY_MS
    else if (event.key === '/') document.querySelector<HTMLElement>('[data-search]')?.focus()
    else if (event.key === '?') showHelp()
    else return
    event.preventDefault()
  }
}

export const shortcuts = new Shortcuts()
