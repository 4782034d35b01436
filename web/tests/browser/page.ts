import AxeBuilder from '@axe-core/playwright'
import { test as base, expect, type APIRequestContext, type Page } from '@playwright/test'

declare global {
  interface Window { cspViolations: string[] }
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
})
export { expect }

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

interface Item { id: string; name: string; command: string; running: boolean; last_sequence: number; problem: string | null; status: unknown; hosts: object }
/** What the server has. */
export async function items(request: APIRequestContext, path: string): Promise<Item[]> {
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

/** The newest plan; undefined if there is none. */
export async function planRun(request: APIRequestContext) {
  for (const run of await items(request, 'runs?limit=100')) {
    if (run.command !== 'plan' || run.running) continue
    const answer = await request.get(`api/v1/plans/${run.id}`)
    if (answer.ok()) return { id: run.id, ...(await answer.json()) }
  }
  return undefined
}
