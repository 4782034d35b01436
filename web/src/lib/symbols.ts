/** How states look: each has its own symbol, so that nothing depends on colour. */
export const SYMBOLS: Record<string, { symbol: string; look: string }> = {
  none: { symbol: '', look: 'skipped' },
  running: { symbol: '▸', look: 'running' },
  ok: { symbol: '✓', look: 'ok' },
  changed: { symbol: 'Δ', look: 'changed' },
  skipped: { symbol: '–', look: 'skipped' },
  ignored: { symbol: '!', look: 'ignored' },
  failed: { symbol: '✗', look: 'failed' },
  unreachable: { symbol: '⊘', look: 'unreachable' },
  succeeded: { symbol: '✓', look: 'ok' },
  refused: { symbol: '✗', look: 'failed' },
  error: { symbol: '✗', look: 'failed' },
  interrupted: { symbol: '!', look: 'changed' },
  healthy: { symbol: '✓', look: 'ok' },
  unhealthy: { symbol: '✗', look: 'failed' },
  unknown: { symbol: '?', look: 'skipped' },
  unreadable: { symbol: '✗', look: 'failed' },
  same: { symbol: '✓', look: 'ok' },
  differs: { symbol: 'Δ', look: 'changed' },
  waits: { symbol: '…', look: 'running' },
}

export const runState = (run: { running: boolean; outcome: string | null }) =>
  run.running ? 'running' : (run.outcome ?? 'unknown')
