import { expect, expectAccessible, expectNoHorizontalScroll, items, open, signInByPassword, test } from './page'

/** Waits for the end of a run, or of all: a deployment has one at a time. On a busy machine, a host that does not answer takes minutes. */
async function expectEnd(request: Parameters<typeof items>[0], id?: string) {
  const running = async () => (await items<{ id: string; running: boolean }>(request, 'runs?limit=100')).filter(({ running }) => running).map((run) => run.id)
  if (id) await expect.poll(running, { timeout: 400_000 }).not.toContain(id)
  else await expect.poll(running, { timeout: 400_000 }).toEqual([])
}

/** The plan of an upgrade that the server has. */
async function upgradePlan(request: Parameters<typeof items>[0]) {
  for (const run of await items<{ id: string; check: boolean }>(request, 'runs?command=upgrade&limit=100')) {
    const answer = run.check ? await request.get(`api/v1/plans/${run.id}`) : null
    if (answer?.ok()) return (await answer.json()) as { run: string; digest: string; stages: { found: { notes: string[] } }[] }
  }
  throw new Error('the server has no plan of an upgrade')
}

test('a person sees the plan of an upgrade, approves it, and follows the run', async ({ page, request }) => {
  test.setTimeout(600_000)
  const plan = await upgradePlan(request)
  await open(page, `/runs/${plan.run}`)
  await page.getByRole('link', { name: 'Show the plan' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Plan of an upgrade of prod')
  await expect(page.getByText(plan.stages[0]!.found.notes[0]!.split('\n')[0]!).first()).toBeVisible()
  await expect(page.getByRole('heading', { level: 2, name: 'upgrade' })).toBeVisible()
  await expectAccessible(page)

  await page.getByRole('button', { name: 'Approve' }).click()
  const dialog = page.getByRole('dialog', { name: 'Upgrade prod by this plan?' })
  await expectAccessible(page)
  const [sent] = await Promise.all([
    page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/deployments/prod/runs')),
    dialog.getByRole('button', { name: 'Upgrade', exact: true }).click(),
  ])
  expect(sent.postDataJSON()).toEqual({ command: 'upgrade', plan: plan.run, digest: plan.digest })
  await expect(page).toHaveURL(/#\/runs\/\w+$/)
  await expect(page.getByRole('heading', { level: 1 })).toContainText('upgrade')
  const id = page.url().split('/').at(-1)!
  const run = await (await request.get(`api/v1/runs/${id}`)).json()
  expect([run.command, run.check, run.deployment]).toEqual(['upgrade', false, 'prod'])
  await expectEnd(request, id)

  // Done once: what is there now needs another plan.
  await open(page, `/plans/${plan.run}`)
  const approve = page.getByRole('button', { name: 'Approve' })
  await expect(approve).toHaveAttribute('aria-disabled', 'true')
  await expect(approve).toHaveAccessibleDescription(`an upgrade has begun since it was made (run ${id})`)
})

test('plans of operations are asked for in the view of a deployment', async ({ page }) => {
  const operations = [
    ['Plan an upgrade', 'upgrade'], ['Plan a rollback', 'rollback'], ['Plan a renewal of certificates', 'certificates'],
    ['Plan an upgrade of etcd', 'etcd_upgrade'], ['Plan a downgrade of etcd', 'etcd_downgrade'],
    ['Plan a defragmentation of etcd', 'etcd_defrag'],
  ] as const
  // Nothing is started: what counts is what the page asks for.
  await page.route('**/deployments/prod/runs', (route) => route.fulfill({
    status: 409, contentType: 'application/problem+json', body: JSON.stringify({ code: 'TooManyRuns', detail: 'as many as may be', status: 409 }),
  }))
  await open(page, '/deployments/prod')
  for (const [name, operation] of operations) {
    const [sent] = await Promise.all([
      page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/deployments/prod/runs')),
      page.getByRole('button', { name, exact: true }).click(),
    ])
    expect(sent.postDataJSON()).toEqual({ command: 'plan', operation })
    await expect(page.getByRole('alert')).toContainText('as many as may be')
  }
  for (const [name, command] of [['Check etcd', 'etcd_check'], ['Compare the data of etcd', 'etcd_verify']] as const) {
    const [sent] = await Promise.all([
      page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/deployments/prod/runs')),
      page.getByRole('button', { name, exact: true }).click(),
    ])
    expect(sent.postDataJSON()).toEqual({ command })
  }
})

test('a deployment is destroyed by its typed name, for the document that was shown', async ({ page, request }) => {
  await page.route('**/deployments/prod/runs', (route) => route.fulfill({
    status: 403, contentType: 'application/problem+json', body: JSON.stringify({ code: 'LoginTooOld', detail: 'this login began long ago', status: 403 }),
  }))
  await open(page, '/deployments/prod')
  await page.getByRole('button', { name: 'Destroy…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Destroy prod' })
  await expect(dialog).toContainText('Nobody can undo it')
  await expectAccessible(page)
  const confirm = dialog.getByRole('button', { name: 'Destroy it' })
  for (const wrong of ['', 'pro', 'Prod']) {
    await dialog.getByRole('textbox').fill(wrong)
    await expect(confirm).toHaveAccessibleDescription('Type the name exactly.')
  }
  await dialog.getByRole('textbox').fill('prod')
  const [sent] = await Promise.all([
    page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/deployments/prod/runs')),
    confirm.click(),
  ])
  const document = (await request.get('api/v1/deployments/prod/document')).headers()['etag'].replaceAll('"', '')
  expect(sent.postDataJSON()).toEqual({ command: 'destroy', confirm: 'prod', document })
  await expect(page.getByRole('alert')).toContainText('this login began long ago')
})

test('backups are listed with whether they are good, and taken by who may', async ({ page, request, playwright, baseURL }) => {
  test.setTimeout(600_000)
  await expectEnd(request)
  await expect.poll(async () => (await items<{ verified: boolean | null }>(request, 'deployments/prod/backups')).map(({ verified }) => verified))
    .toEqual([true, false])
  await open(page, '/deployments/prod')
  await page.getByRole('link', { name: 'Backups of etcd' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Backups of etcd of prod')
  const row = (name: string) => page.getByRole('row').filter({ has: page.getByRole('rowheader', { name }) })
  await expect(row('20261127T120000Z-r7')).toContainText('✓ yes')
  await expect(row('20261126T120000Z-r6')).toContainText('✗ no')
  await expect(row('20261126T120000Z-r6')).toContainText('damaged')
  await expectAccessible(page)
  await page.setViewportSize({ width: 320, height: 640 })
  await expectNoHorizontalScroll(page)
  await expectAccessible(page)

  const [answer] = await Promise.all([
    page.waitForResponse((response) => response.request().method() === 'POST' && response.url().endsWith('/deployments/prod/runs')),
    page.getByRole('button', { name: 'Back up now' }).click(),
  ])
  expect(answer.status()).toBe(201)
  const { command, id } = await answer.json()
  expect(command).toBe('etcd backup')
  await expect(page.getByRole('heading', { level: 1 })).toContainText('etcd backup')
  await expectEnd(request, id)

  // alice may see and plan.
  const alice = await signInByPassword(playwright, baseURL!, 'alice', process.env.WINDLASS_PASSWORD ?? '')
  const refused = await alice.post('api/v1/deployments/prod/runs', { data: { command: 'etcd_backup' } })
  expect([refused.status(), (await refused.json()).code]).toEqual([403, 'Forbidden'])
  await page.route('**/api/v1/session', async (route) => {
    const session = await (await alice.get('api/v1/session')).json()
    await route.fulfill({ json: session })
  })
  await page.goto('about:blank')
  await open(page, '/deployments/prod/backups')
  await expect(page.getByRole('button', { name: 'Back up now' })).toHaveAccessibleDescription('You need the right “approve” for this deployment.')
  await alice.dispose()
})
