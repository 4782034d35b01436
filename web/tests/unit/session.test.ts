import { beforeEach, describe, expect, it, vi } from 'vitest'

const SESSION = { name: 'alice', rights: {}, ends: '', version: '' }
let kept: Map<string, string>
let answers: (() => Response)[]
let asked: { path: string; key: string | null; body: unknown }[]
let signedOut: number
let blocked: boolean

const answer = (status: number, body: object | null = {}) => () => new Response(body && JSON.stringify(body), { status })
const keys = () => asked.map(({ key }) => key)
let api: typeof import('../../src/api').api

beforeEach(async () => {
  vi.resetModules()
  kept = new Map()
  answers = []
  asked = []
  signedOut = 0
  blocked = false
  const use = <T>(action: () => T): T => {
    if (blocked) throw new DOMException('', 'SecurityError')
    return action()
  }
  vi.stubGlobal('localStorage', {
    getItem: (name: string) => use(() => kept.get(name) ?? null),
    setItem: (name: string, value: string) => use(() => kept.set(name, value)),
    removeItem: (name: string) => use(() => kept.delete(name)),
  })
  vi.stubGlobal('document', { baseURI: 'http://h/sub/#/' })
  vi.stubGlobal('fetch', async (url: string, { headers, body }: { headers: Record<string, string>; body?: string }) => {
    asked.push({ path: url.replace('http://h/sub/api/v1/', ''), key: headers['Windlass-Key'] ?? null, body: body && JSON.parse(body) })
    return answers.shift()!()
  })
  const module = await import('../../src/api')
  api = module.api
  module.onSignedOut.call = () => signedOut++
})

describe('the key of a session', () => {
  it('is kept, and goes with each request', async () => {
    answers = [answer(201, { ...SESSION, key: 'k1' }), answer(200, SESSION), answer(202), () => new Response('log'), answer(200)]
    expect(await api.signIn('secret')).toEqual(SESSION)
    expect([...kept]).toEqual([['windlass.key', 'k1']])
    await api.session()
    await api.stop('r')
    await api.log('r')
    await api.eventStream('r', 7, new AbortController().signal)
    expect(keys()).toEqual([null, 'k1', 'k1', 'k1', 'k1'])
    expect(asked.at(-1)!.path).toBe('runs/r/events?after=7')
  })

  it('comes for a link or for an account, whose password is not kept', async () => {
    answers = [answer(201, { ...SESSION, key: 'k1' }), answer(201, { ...SESSION, key: 'k2' })]
    await api.signIn('secret')
    await api.signIn({ name: 'alice', password: 'seven green boats wait' })
    expect(asked.map(({ body }) => body)).toEqual([{ secret: 'secret' }, { name: 'alice', password: 'seven green boats wait' }])
    // The server ends the session that this browser had before.
    expect(keys()).toEqual([null, 'k1'])
    expect([...kept]).toEqual([['windlass.key', 'k2']])
  })

  it('does not come after too many attempts, with the time to wait', async () => {
    const headers = { 'Retry-After': '7' }
    answers = [() => new Response(JSON.stringify({ code: 'TooManyAttempts', detail: 'd' }), { status: 429, headers })]
    await expect(api.signIn({ name: 'alice', password: 'p' })).rejects.toMatchObject({ code: 'TooManyAttempts', retryAfter: 7 })
    expect(kept.size).toBe(0)
  })

  it('is gone after signing out, also when the server does not answer', async () => {
    for (const last of [answer(204, null), answer(500), () => { throw new TypeError('no connection') }]) {
      kept.set('windlass.key', 'k1')
      answers = [last]
      await api.signOut().catch(() => null)
      expect(kept.size).toBe(0)
    }
  })

  it('is gone when the server does not accept it', async () => {
    kept.set('windlass.key', 'k1')
    answers = [answer(401)]
    await expect(api.runs({})).rejects.toMatchObject({ status: 401 })
    expect([kept.size, signedOut]).toEqual([0, 1])

    kept.set('windlass.key', 'k1')
    answers = [answer(401)]
    await expect(api.session()).rejects.toMatchObject({ status: 401 })
    expect([kept.size, signedOut]).toEqual([0, 1])
  })

  it('stays after other failures', async () => {
    kept.set('windlass.key', 'k1')
    answers = [answer(403), answer(500), () => { throw new TypeError('no connection') }]
    for (const _ of [1, 2, 3]) await expect(api.runs({})).rejects.toThrow()
    expect([kept.size, signedOut]).toEqual([1, 0])
  })

  it('may have been replaced in another tab meanwhile', async () => {
    kept.set('windlass.key', 'k1')
    answers = [() => {
      kept.set('windlass.key', 'k2')
      return answer(401)()
    }, answer(200, { items: [], next: null })]
    await api.runs({})
    expect([keys(), signedOut]).toEqual([['k1', 'k2'], 0])
  })

  it('is kept in memory when the browser keeps nothing', async () => {
    blocked = true
    answers = [answer(201, { ...SESSION, key: 'k1' }), answer(200), answer(401), answer(401)]
    await api.signIn('secret')
    await api.session()
    await api.session().catch(() => null)
    await api.session().catch(() => null)
    expect(keys()).toEqual([null, 'k1', 'k1', null])
  })
})
