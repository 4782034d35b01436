import { readFileSync } from 'node:fs'
import AxeBuilder from '@axe-core/playwright'
import { test as base, expect, type APIRequestContext, type Page, type PlaywrightWorkerArgs } from '@playwright/test'

declare global {
  interface Window { cspViolations: string[] }
}

/** The key that the page keeps of the session that `sign in` has begun. */
function keyOf(storageState: string): string {
  const { origins } = JSON.parse(readFileSync(storageState, 'utf8')) as { origins: { localStorage: { name: string; value: string }[] }[] }
  const key = origins.flatMap((origin) => origin.localStorage).find(({ name }) => name === 'windlass.key')
  expect(key, 'the page has kept a key').toBeDefined()
  return key!.value
}

/** A page that may load nothing from elsewhere, violate no policy and throw no error. */
export const test = base.extend<{ strict: void }>({
  strict: [
    async ({ page, baseURL }, use) => {
      const wrong: string[] = []
      const origin = new URL(baseURL!).origin
      page.on('request', (request) => {
        if (new URL(request.url()).origin !== origin) wrong.push(`request to ${request.url()}`)
      })
      page.on('pageerror', (error) => wrong.push(error.message))
      page.on('console', (message) => {
        if (message.type() === 'error' && !/Failed to load resource|ERR_INTERNET_DISCONNECTED/.test(message.text())) wrong.push(message.text())
      })
      await page.exposeFunction('reportViolation', (text: string) => wrong.push(`policy: ${text}`))
      await page.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', (event) => {
          void (window as never as { reportViolation: (text: string) => void })
            .reportViolation(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`)
        })
      })
      await use()
      expect(wrong).toEqual([])
    },
    { auto: true },
  ],
  // With the cookie and the key of the page. Only these requests: the page itself must send the key without help.
  request: async ({ playwright, baseURL, storageState }, use) => {
    const request = await playwright.request.newContext({
      baseURL, storageState, extraHTTPHeaders: { 'Windlass-Key': keyOf(storageState as string) },
    })
    await use(request)
    await request.dispose()
  },
})
export { expect }

/** Requests of another browser, in which an account is signed in. */
export async function signInByPassword(playwright: PlaywrightWorkerArgs['playwright'], baseURL: string, name: string, password: string) {
  const first = await playwright.request.newContext({ baseURL })
  const headers = { Origin: new URL(baseURL).origin }
  const answer = await first.post('api/v1/sessions', { headers, data: { name, password } })
  expect(answer.status()).toBe(201)
  const { key } = await answer.json()
  const storageState = await first.storageState()
  await first.dispose()
  return playwright.request.newContext({ baseURL, storageState, extraHTTPHeaders: { ...headers, 'Windlass-Key': key } })
}

/** Opens a view and waits until it has its data. */
export async function open(page: Page, hash: string) {
  await page.goto(`./#${hash}`)
  await expect(page.locator('main h1')).toBeVisible()
  await expect(page.getByText(/^(Loading…|正在加载…)$/)).toHaveCount(0)
}

export async function expectAccessible(page: Page) {
  const { violations } = await new AxeBuilder({ page }).analyze()
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(' ')}`)).toEqual([])
}

export async function expectNoHorizontalScroll(page: Page) {
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
}

interface Item {
  id: string; name: string; command: string; running: boolean; last_sequence: number; outcome: string | null; problem: string | null; hosts: object
}
/** What the server has. */
export async function items<T = Item>(request: APIRequestContext, path: string): Promise<T[]> {
  const answer = await request.get(`api/v1/${path}`)
  expect(answer.ok()).toBe(true)
  return (await answer.json()).items
}

/** A run with results of hosts that has ended. */
export async function endedRun(request: APIRequestContext) {
  const runs = await items(request, 'runs?limit=100')
  const run = runs.find((run) => !run.running && run.last_sequence < 50_000 && Object.keys(run.hosts).length > 0)
  expect(run, 'the server has a run that has ended').toBeDefined()
  return run!
}

/** The newest plan. */
export async function planRun(request: APIRequestContext) {
  for (const run of await items(request, 'runs?limit=100')) {
    if (run.command !== 'plan' || run.running) continue
    const answer = await request.get(`api/v1/plans/${run.id}`)
    if (answer.ok()) return { id: run.id, ...(await answer.json()) }
  }
  throw new Error('the server has no plan')
}
