import type { Page } from '@playwright/test'
import { expect, items, open, test } from './page'

/** Starts a look at the first deployment, on its page. */
async function startRun(page: Page, name: string) {
  await open(page, `/deployments/${name}`)
  await page.getByRole('button', { name: 'Look now' }).click()
  await expect(page).toHaveURL(/#\/runs\/\w+/)
  await expect(page.getByRole('navigation', { name: 'Views of the run' })).toBeVisible()
}
const counts = async (page: Page) => (await page.locator('.totals').innerText()).replace(/\s+/g, ' ')

test('a run is followed through lost connections, without gaps', async ({ page, context, request }) => {
  const deployment = (await items(request, 'deployments')).find((item) => item.problem === null)
  test.skip(!deployment, 'the server has no deployment')
  await startRun(page, deployment!.name)
  await page.waitForTimeout(700)
  await context.setOffline(true)
  await page.waitForTimeout(1500)
  await context.setOffline(false)
  await expect(page.locator('.facts [role=status]')).not.toHaveText(/running/, { timeout: 50_000 })
  await expect(page.getByText('The connection to the server is lost', { exact: false })).toHaveCount(0)
  const followed = await counts(page)
  await page.reload()
  await expect(page.locator('.totals')).toBeVisible()
  expect(followed).toBe(await counts(page))
})

test('a run can be stopped, after a confirmation', async ({ page, request }) => {
  const deployment = (await items(request, 'deployments')).find((item) => item.problem === null)
  test.skip(!deployment, 'the server has no deployment')
  await startRun(page, deployment!.name)
  const stop = page.getByRole('button', { name: 'Stop the run' })
  if (!(await stop.isVisible())) return
  await stop.click()
  await page.getByRole('dialog').getByRole('button', { name: 'Stop the run' }).click()
  await expect(page.locator('.facts [role=status]')).not.toHaveText(/running/, { timeout: 50_000 })
  await expect(stop).toHaveCount(0)
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
