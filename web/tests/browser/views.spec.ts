import { readFileSync } from 'node:fs'
import { endedRun, expect, expectAccessible, expectNoHorizontalScroll, open, planRun, signInByPassword, test } from './page'

const VIEWS = ['deployments', 'deployment', 'runs', 'run', 'run hosts', 'run matrix', 'run log', 'run panel', 'plan', 'sessions', 'tokens', 'audit', 'about']

/** The address of a view. */
async function addressOf(view: string, request: Parameters<typeof endedRun>[0]): Promise<string> {
  if (view === 'deployment') return '/deployments/prod'
  if (view === 'plan') return `/plans/${(await planRun(request)).id}`
  if (!view.startsWith('run') || view === 'runs') return `/${view}`
  const { id } = await endedRun(request)
  const tasks = await (await request.get(`api/v1/runs/${id}/tasks`)).json()
  const [task] = tasks.tasks
  return `/runs/${id}?${{ 'run': '', 'run hosts': 'view=hosts', 'run matrix': 'view=matrix', 'run log': 'view=log', 'run panel': `host=${Object.keys(task.results)[0]}&task=${task.id}` }[view]}`
}

for (const view of VIEWS) {
  test(`${view}: accessible, in light and dark, at 320 pixels, in Chinese`, async ({ page, request }) => {
    const address = await addressOf(view, request)
    await open(page, address)
    await expectAccessible(page)

    await page.emulateMedia({ colorScheme: 'dark' })
    await expectAccessible(page)

    await page.setViewportSize({ width: 320, height: 640 })
    await expectNoHorizontalScroll(page)
    await expectAccessible(page)

    await page.evaluate(() => localStorage.setItem('windlass.locale', 'zh'))
    await page.reload()
    await open(page, address)
    await expect(page.locator('html')).toHaveAttribute('lang', 'zh-CN')
    await expect(page.getByRole('link', { name: '运行记录', includeHidden: true }).first()).toBeAttached()
    await expectNoHorizontalScroll(page)
    await expectAccessible(page)
  })
}

test('forced colours and reduced motion', async ({ page, request }) => {
  await page.emulateMedia({ forcedColors: 'active', reducedMotion: 'reduce' })
  const { id } = await endedRun(request)
  await open(page, `/runs/${id}?view=matrix`)
  await expect(page.getByRole('grid')).toBeVisible()
  await expectAccessible(page)
})

test('an unknown page and an unknown run say so', async ({ page }) => {
  await open(page, '/nowhere')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('There is no such page')
  await open(page, '/runs/00000000000000000000000000')
  await expect(page.getByRole('alert')).toBeVisible()
  await expectAccessible(page)
})

test('details of a task are loaded when it is opened', async ({ page, request }) => {
  const { id } = await endedRun(request)
  const { hosts } = await (await request.get(`api/v1/runs/${id}/tasks`)).json()
  const loaded: string[] = []
  page.on('request', (request) => request.url().includes('/events?') && loaded.push(request.url()))
  await open(page, `/runs/${id}?view=hosts`)
  await page.getByRole('button', { name: hosts[0], exact: true }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog).toBeVisible()
  const before = loaded.length
  await dialog.locator('summary').first().click()
  await expect.poll(() => loaded.length).toBe(before + 1)
  expect(loaded.at(-1)).toMatch(/host=.*task=/)
  await page.keyboard.press('Escape')
  await expect(dialog).toHaveCount(0)
})

test('the log is saved as a file', async ({ page, request }) => {
  const { id } = await endedRun(request)
  await open(page, `/runs/${id}?view=log`)
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save the log' }).click()])
  expect(download.suggestedFilename()).toBe(`windlass-${id}.log`)
  const log = await request.get(`api/v1/runs/${id}/log`)
  expect(readFileSync(await download.path()).equals(await log.body())).toBe(true)
})

test('a token is shown once and can be revoked', async ({ page }) => {
  const name = `test-${Date.now()}`
  await open(page, '/tokens')
  const create = page.getByRole('button', { name: 'Create the token' })
  await expect(create).toHaveAttribute('aria-disabled', 'true')
  await expect(page.getByText('Enter a name.')).toBeVisible()
  await page.getByLabel('Name', { exact: true }).fill(name)
  await create.click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.locator('code')).toHaveText(/^wl_/)
  await expectAccessible(page)
  await dialog.locator('footer').getByRole('button', { name: 'Close' }).click()
  await open(page, '/audit')
  await expect(page.getByRole('row').filter({ hasText: name }).getByText('see=* for 30 days')).toBeVisible()
  await open(page, '/tokens')
  await page.getByRole('button', { name: `Revoke the token ${name}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
  await expect(page.getByRole('rowheader', { name })).toHaveCount(0)
})

test('a person with the right admin ends the session of somebody else', async ({ page, playwright, baseURL }) => {
  const alice = await signInByPassword(playwright, baseURL!, 'alice', process.env.WINDLASS_PASSWORD ?? '')
  await open(page, '/sessions')
  const end = page.getByRole('button', { name: /^End the session of alice from / })
  await expect(end).toHaveCount(1)
  await end.click()
  await expectAccessible(page)
  await page.keyboard.press('Escape')
  expect((await alice.get('api/v1/session')).status()).toBe(200)
  await end.click()
  await page.getByRole('dialog').getByRole('button', { name: 'End', exact: true }).click()
  await expect(end).toHaveCount(0)
  expect((await alice.get('api/v1/session')).status()).toBe(401)
  await open(page, '/audit')
  await expect(page.getByRole('row').filter({ hasText: 'end a session' }).first()).toContainText('of alice')
  await alice.dispose()
})

test('approval of a plan is possible, or says why not', async ({ page, request }) => {
  const plan = await planRun(request)
  await open(page, `/plans/${plan.id}`)
  for (const { host } of plan.left_out) await expect(page.getByRole('note')).toContainText(host)
  const approve = page.getByRole('button', { name: 'Approve' })
  if (!plan.approvable) {
    await expect(approve).toHaveAttribute('aria-disabled', 'true')
    await expect(approve).toHaveAccessibleDescription(plan.why_not)
    return
  }
  await approve.click()
  const dialog = page.getByRole('dialog')
  await expectAccessible(page)
  const apply = dialog.getByRole('button', { name: 'Apply' })
  if (plan.removals.length) {
    await expect(apply).toHaveAttribute('aria-disabled', 'true')
    await dialog.getByRole('textbox').fill(plan.removals.join(' '))
  }
  await expect(apply).toHaveAttribute('aria-disabled', 'false')
  await page.keyboard.press('Escape')
})
