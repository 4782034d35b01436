/** What the browser keeps for this page. Where it keeps nothing, it lasts as long as the page is open. */

const memory = new Map<string, string>()

export const stored = {
  get(name: string): string | null {
    const value = memory.get(name)
    if (value !== undefined) return value
    try {
      return localStorage.getItem(name)
    } catch {
      return null
    }
  },

  set(name: string, value: string) {
    try {
      localStorage.setItem(name, value)
      memory.delete(name)
    } catch {
      memory.set(name, value)
    }
  },

  remove(name: string) {
    memory.delete(name)
    try {
      localStorage.removeItem(name)
    } catch {
      // It holds nothing.
    }
  },
}
