import { endedRun, expect, open, planRun, test } from './page'

/** Pictures for the docs, when WINDLASS_SCREENSHOTS names a directory. */
const directory = process.env.WINDLASS_SCREENSHOTS

test('pictures of the main views', async ({ page, request }) => {
  test.skip(!directory, 'WINDLASS_SCREENSHOTS names no directory')
  await page.setViewportSize({ width: 1100, height: 760 })
  const plan = await planRun(request)
  const views = { deployments: '/', sessions: '/sessions', run: `/runs/${(await endedRun(request)).id}`, plan: `/plans/${plan.id}` }
  for (const [name, hash] of Object.entries(views)) {
    await open(page, hash)
    await page.screenshot({ path: `${directory}/page-${name}.png` })
  }
})
