import { results } from '../../playwright.config'
import { expect, expectAccessible, test } from './page'

const secret = process.env.WINDLASS_LINK ?? ''

test('without a session, the page says how to get a link', async ({ page }) => {
  await page.goto('./')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Sign in to windlass')
  await expect(page.getByText('windlass serve link', { exact: true })).toBeVisible()
  await expectAccessible(page)
})

test('a browser that keeps nothing still shows the page', async ({ page }) => {
  await page.addInitScript(() => Object.defineProperty(window, 'localStorage', { get: () => { throw new DOMException('', 'SecurityError') } }))
  await page.goto('./')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Sign in to windlass')
  await page.getByLabel('Language').selectOption('zh')
  await expect(page.locator('html')).toHaveAttribute('lang', 'zh-CN')
})

test('a wrong link is refused with a reason', async ({ page }) => {
  await page.goto('./#link=wrong')
  await expect(page.getByRole('alert')).toBeVisible()
  await expectAccessible(page)
})

test('a link signs in once, and leaves the address at once', async ({ page, context }) => {
  expect(secret, 'WINDLASS_LINK').not.toBe('')
  let sentTo = ''
  page.on('request', (request) => (sentTo += request.method() === 'GET' ? `${request.url()} ` : ''))
  await page.goto('./')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Sign in to windlass')
  await page.evaluate((secret) => (location.hash = `#link=${secret}`), secret)
  await expect(page.getByRole('heading', { level: 1, name: 'Deployments' })).toBeVisible()
  expect(page.url()).not.toContain(secret)
  expect(sentTo.replace(`#link=${secret}`, '')).not.toContain(secret)
  expect(await page.evaluate(() => document.cookie)).toBe('')
  // The cookie alone is not enough.
  const key = await page.evaluate(() => localStorage.getItem('windlass.key'))
  expect(key).toBeTruthy()
  await page.evaluate(() => localStorage.removeItem('windlass.key'))
  await page.reload()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Sign in to windlass')
  await page.evaluate((key) => localStorage.setItem('windlass.key', key!), key)
  await page.getByRole('button', { name: 'I have signed in in another tab' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Deployments' })).toBeVisible()
  await context.storageState({ path: `${results}/session.json` })
})
