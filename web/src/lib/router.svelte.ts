/** Routes live in the fragment (`#/runs/ID?host=h1`): they work below any path, and the server needs no fallback. */

export interface Route { path: string[]; query: URLSearchParams }

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export function href(path: string[], query: Record<string, string | number | null | undefined> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '')
  const search = given.length ? `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)]))}` : ''
  return `#/${path.map(encodeURIComponent).join('/')}${search}`
}

/** Takes the one-time secret of a login link out of the address. */
export function takeLoginSecret(): string | null {
  const secret = new URLSearchParams(location.hash.replace(/^#/, '')).get('link')
  if (secret !== null) history.replaceState(null, '', location.pathname + location.search)
  return secret
}

class Router {
  route = $state.raw<Route>({ path: [], query: new URLSearchParams() })

  start() {
    const read = () => (this.route = parseRoute(location.hash))
    addEventListener('hashchange', read)
    read()
  }

  go(path: string[], query: Record<string, string | number | null | undefined> = {}) {
    location.hash = href(path, query)
  }

  /** Changes the query without a new step in the history. */
  replaceQuery(query: Record<string, string | number | null | undefined>) {
    history.replaceState(null, '', href(this.route.path, query))
    this.route = parseRoute(location.hash)
  }
}

export const router = new Router()
