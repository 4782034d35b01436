import type { APIRequestContext, Page } from '@playwright/test'
import { expect, items, open, test } from './page'

/** Its host does not answer: a look at it takes long enough. */
const DEPLOYMENT = 'prod'

/** Starts a look at the deployment, on its page, and shows the run. Returns the run's id. */
async function startRun(page: Page): Promise<string> {
  await open(page, `/deployments/${DEPLOYMENT}`)
  await page.getByRole('button', { name: 'Look now' }).click()
  await expect(page).toHaveURL(/#\/runs\/\w+/)
  await expect(page.getByRole('navigation', { name: 'Views of the run' })).toBeVisible()
  await expect(state(page), 'the run is under way').toHaveText(/running/)
  return page.url().match(/#\/runs\/(\w+)/)![1]!
}
const state = (page: Page) => page.locator('.facts [role=status]')
const isStream = /\/events\?after=\d+$/
const lost = (page: Page) => page.getByText('The connection to the server is lost', { exact: false })
const counts = async (page: Page) => (await page.locator('.totals').innerText()).replace(/\s+/g, ' ')
async function runOf(request: APIRequestContext, id: string) {
  const answer = await request.get(`api/v1/runs/${id}`)
  expect(answer.ok()).toBe(true)
  return (await answer.json()) as Awaited<ReturnType<typeof items>>[number]
}

test('a run is followed through lost connections, without gaps', async ({ page, request }) => {
  const asked: number[] = []
  let sent = 0
  // An offline browser keeps the connections that it has. So the first one ends within an event, and the second one fails.
  await page.route(isStream, async (route) => {
    const [, id, after] = route.request().url().match(/runs\/(\w+)\/events\?after=(\d+)/)!
    asked.push(Number(after))
    if (asked.length === 1) {
      const some = await items<{ sequence: number }>(request, `runs/${id}/events?after=${after}`)
      sent = some.at(-1)?.sequence ?? Number(after)
      const body = some.map((event) => `id: ${event.sequence}\ndata: ${JSON.stringify(event)}\n\n`).join('')
      await route.fulfill({ contentType: 'text/event-stream', body: `: events\n\n${body}id: ${sent + 1}\ndata: {"eve` })
    } else if (asked.length === 2) await route.abort('connectionreset')
    else await route.continue()
  })
  const id = await startRun(page)
  await expect(lost(page)).toBeVisible()
  await expect.poll(() => asked.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(3)
  const before = await runOf(request, id)
  expect(before.running, 'the run is under way when the page connects again').toBe(true)
  await expect(lost(page)).toHaveCount(0)
  await expect(state(page)).not.toHaveText(/running/, { timeout: 90_000 })
  const after = await runOf(request, id)
  expect(after.last_sequence, 'the run went on after that').toBeGreaterThan(before.last_sequence)
  // The page asked for what follows the last whole event.
  expect(asked.slice(1, 3)).toEqual([sent, sent])
  const [followed, ending] = [await counts(page), await state(page).innerText()]
  await page.reload()
  await expect(page.locator('.totals')).toBeVisible()
  expect([followed, ending]).toEqual([await counts(page), await state(page).innerText()])
})

test('a run can be stopped, after a confirmation', async ({ page, request }) => {
  const id = await startRun(page)
  const stop = page.getByRole('button', { name: 'Stop the run' })
  await stop.click()
  const [answer] = await Promise.all([
    page.waitForResponse((response) => response.url().endsWith(`/runs/${id}/stop`)),
    page.getByRole('dialog').getByRole('button', { name: 'Stop the run' }).click(),
  ])
  expect(answer.status(), 'the run was still under way').toBe(202)
  await expect(state(page)).toHaveText(/interrupted/, { timeout: 90_000 })
  await expect(stop).toHaveCount(0)
  expect(await runOf(request, id)).toMatchObject({ running: false, outcome: 'interrupted' })
})

test('a session that ends while a run is followed leads to the sign-in page', async ({ page, context, request }) => {
  await page.route(isStream, (route) => route.abort('connectionreset'))
  const id = await startRun(page)
  await expect(lost(page)).toBeVisible()
  await context.clearCookies()
  await page.unroute(isStream)
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Sign in to windlass', { timeout: 30_000 })
  expect(await page.evaluate(() => localStorage.getItem('windlass.key'))).toBeNull()
  await request.post(`api/v1/runs/${id}/stop`, { data: {} })
})

test('a large run opens within a second and scrolls', async ({ page, request }) => {
  const large = (await items(request, 'runs?limit=100')).find((run) => !run.running && run.last_sequence > 50_000)
  test.skip(!large, 'the server has no large run')
  const times: number[] = []
  for (let round = 0; round < 3; round++) {
    await open(page, '/runs')
    const link = page.locator(`main a[href="#/runs/${large!.id}"]`)
    times.push(await link.evaluate(async (element: HTMLElement) => {
      const start = performance.now()
      element.click()
      while (!document.querySelector('.totals')) await new Promise((done) => requestAnimationFrame(done))
      return performance.now() - start
    }))
  }
  // Other work of the machine only makes it slower.
  const opened = Math.min(...times)
  await page.getByRole('link', { name: 'Matrix' }).click()
  const grid = page.getByRole('grid')
  await expect(grid).toBeVisible()
  const frames = await grid.evaluate(async (element) => {
    const times: number[] = []
    let last = performance.now()
    for (let step = 0; step < 120; step++) {
      if (step < 60) element.scrollTop += 60
      else element.scrollLeft += 60
      await new Promise((done) => requestAnimationFrame(done))
      times.push(performance.now() - last)
      last = performance.now()
    }
    return { longest: Math.max(...times), cells: element.querySelectorAll('[role=gridcell]').length, median: times.sort((a, b) => a - b)[60]! }
  })
  test.info().annotations.push({ type: 'measured', description: `opened in ${times.map(Math.round).join(', ')} ms; frames: ${JSON.stringify(frames)}` })
  console.log(test.info().annotations.at(-1)!.description)
  expect(opened).toBeLessThan(1000)
  expect(frames.cells).toBeLessThan(4000)
  expect(frames.median).toBeLessThan(50)
})
