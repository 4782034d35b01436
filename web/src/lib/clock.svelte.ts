/** The time, each second, for ages and durations on the page. */
export const clock = $state({ now: Date.now() })
setInterval(() => {
  if (!document.hidden) clock.now = Date.now()
}, 1000)

const POLL_MS = 15_000

/** Loads now, and again and again while the page is seen. Returns how to end it. */
export function poll(load: () => unknown): () => void {
  void load()
  const timer = setInterval(() => {
    if (!document.hidden) void load()
  }, POLL_MS)
  return () => clearInterval(timer)
}
