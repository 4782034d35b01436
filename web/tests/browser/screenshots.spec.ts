import { endedRun, expect, open, planRun, test } from './page'

/** Pictures for the docs, when WINDLASS_SCREENSHOTS names a directory. */
const directory = process.env.WINDLASS_SCREENSHOTS

test('pictures of the main views', async ({ page, request }) => {
  test.skip(!directory, 'WINDLASS_SCREENSHOTS names no directory')
  await page.setViewportSize({ width: 1100, height: 760 })
  const plan = await planRun(request)
  const views = { deployments: '/', sessions: '/sessions', run: `/runs/${(await endedRun(request)).id}`, plan: `/plans/${plan.id}` }
  const host = (name: string, address: string, fingerprint: string, confirmed: boolean) =>
    ({ name, address, port: null, user: 'root', algorithm: 'ssh-ed25519', fingerprint, problem: null, confirmed })
  const hosts = [
    host('cp-1', '192.0.2.11', 'SHA256:aEg7vukCKSoQ8h2CWPrIXKYfNycu5bR+RikAcN/CDSs', true),
    host('cp-2', '192.0.2.12', 'SHA256:GW7Tuxnpzv4Yab+3CtcycjKYe86Yg6XE5cjoefxW7sw', false),
  ]
  const draft = { name: 'north', pasted: 'cp-1 192.0.2.11 root\ncp-2 192.0.2.12 root\n', hosts }
  await page.addInitScript((draft) => sessionStorage.setItem('windlass.draft', draft), JSON.stringify(draft))
  Object.assign(views, { new: '/new/hosts' })
  for (const [name, hash] of Object.entries(views)) {
    await open(page, hash)
    await page.screenshot({ path: `${directory}/page-${name}.png` })
  }
})
