/** Times and sizes as text. */

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000], ['month', 2_592_000], ['day', 86_400], ['hour', 3600], ['minute', 60], ['second', 1],
]

/** `3 minutes ago`. */
export function ago(time: string, now: number, locale: string): string {
  const seconds = Math.round((Date.parse(time) - now) / 1000)
  if (Number.isNaN(seconds)) return time
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS.at(-1)!
  return new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }).format(Math.trunc(seconds / size), unit)
}

const pad = (number: number, digits = 2) => String(number).padStart(digits, '0')

/** `2026-11-27 09:59:08`, in the time zone of the browser. */
export function localTime(time: string): string {
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return time
  const day = [date.getFullYear(), pad(date.getMonth() + 1), pad(date.getDate())].join('-')
  return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => pad(part)).join(':')}`
}

/** `2026-11-27 08:59:08 UTC`. */
export function utcTime(time: string): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? time : `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** `12 ms`, `0.4 s`, `12 s`, `3 min 05 s`, `2 h 07 min`. The units are the same in both languages. */
export function duration(seconds: number): string {
  if (seconds < 0.0995) return `${Math.max(Math.round(seconds * 1000), 0)} ms`
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`
  return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} min`
}

/** `1.5 MiB`. */
export function bytes(size: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit++
  }
  return `${unit && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`
}

/** How long a run took, or takes up to now; `–` if its end is not known. */
export function runDuration(run: { started: string; ended: string | null; running: boolean }, now: number): string {
  if (!run.ended && !run.running) return '–'
  return duration(((run.ended ? Date.parse(run.ended) : now) - Date.parse(run.started)) / 1000)
}

/** The first part of a run's id, as the command line prints it. */
export const shortId = (id: string) => id.slice(0, 12)
