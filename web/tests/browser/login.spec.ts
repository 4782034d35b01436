import { results } from '../../playwright.config'
import type { Page } from '@playwright/test'
import { expect, expectAccessible, expectNoHorizontalScroll, open, signInByPassword, test } from './page'

const secret = process.env.WINDLASS_LINK ?? ''
/** Of the accounts alice and bob. */
const password = process.env.WINDLASS_PASSWORD ?? ''

const signIn = (page: Page) => page.getByRole('button', { name: 'Sign in' })

test('without a session, the page asks for a password, and says how to get a link', async ({ page }) => {
  await page.goto('./')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Sign in to windlass')
  await expect(page.getByText('windlass serve link', { exact: true })).toBeVisible()
  await expect(signIn(page)).toHaveAttribute('aria-disabled', 'true')
  await expect(signIn(page)).toHaveAccessibleDescription('Enter your name and your password.')
  await expectAccessible(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.setViewportSize({ width: 320, height: 640 })
  await page.getByLabel('Language').selectOption('zh')
  await expect(page.getByLabel('密码')).toBeVisible()
  await expectNoHorizontalScroll(page)
  await expectAccessible(page)
})

test('a name and a password sign in, by keyboard only', async ({ page }) => {
  expect(password, 'WINDLASS_PASSWORD').not.toBe('')
  await page.goto('./')
  await page.getByLabel('Name').focus()
  await page.keyboard.type('alice')
  await page.keyboard.press('Tab')
  await page.keyboard.type('not the password')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('alert')).toContainText('The name or the password is wrong.')
  await expect(page.getByLabel('Password')).toBeFocused()
  await expect(page.getByLabel('Password')).toHaveValue('')
  await expectAccessible(page)
  await page.keyboard.type(password)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'Deployments' })).toBeVisible()
  expect(await page.evaluate(() => document.cookie)).toBe('')
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(password)
  // alice sees her own sessions, and nothing that needs the right admin.
  await expect(page.getByRole('link', { name: 'Tokens' })).toHaveCount(0)
  await page.locator('h1').focus()
  await page.keyboard.press('g')
  await page.keyboard.press('s')
  await expect(page.getByRole('heading', { level: 1, name: 'Sessions' })).toBeFocused()
  await expect(page.getByRole('row').filter({ hasText: 'this browser' })).toContainText('alice')
  await page.getByRole('button', { name: 'Sign out alice' }).click()
  await expect(signIn(page)).toBeVisible()
})

test('after too many wrong passwords, the page says how long to wait', async ({ page }) => {
  await page.goto('./')
  await page.getByLabel('Name').fill('nobody')
  for (let tries = 0; tries < 6; tries++) {
    await page.getByLabel('Password').fill(`wrong password ${tries}`)
    const [answer] = await Promise.all([page.waitForResponse(/sessions/), page.keyboard.press('Enter')])
    await answer.finished()
    await expect(page.getByLabel('Password')).toHaveValue('')
  }
  await expect(page.getByRole('alert')).toContainText(/Too many attempts. Try again in \d+ seconds?\./)
})

test('a person changes the own password, which ends the other sessions', async ({ page, playwright, baseURL }) => {
  const other = await signInByPassword(playwright, baseURL!, 'bob', password)
  expect((await other.get('api/v1/session')).status()).toBe(200)
  await page.goto('./')
  await page.getByLabel('Name').fill('bob')
  await page.getByLabel('Password').fill(password)
  await signIn(page).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Deployments' })).toBeVisible()
  await open(page, '/sessions')
  await expect(page.getByRole('row').filter({ hasText: 'bob' })).toHaveCount(2)
  await expectAccessible(page)
  const change = page.getByRole('button', { name: 'Change the password' })
  await expect(change).toHaveAccessibleDescription('Enter your current password.')
  await page.getByLabel('Current password').fill(password)
  await page.getByLabel(/^New password, /).fill('passwordpassword')
  await expect(change).toHaveAccessibleDescription('The two new passwords differ.')
  await page.getByLabel('New password again').fill('passwordpassword')
  await change.click()
  await expect(page.getByRole('alert')).toContainText('This password is too easy to guess')
  expect((await other.get('api/v1/session')).status()).toBe(200)
  await page.getByLabel(/^New password, /).fill(`${password} and more`)
  await page.getByLabel('New password again').fill(`${password} and more`)
  await change.click()
  await expect(page.getByRole('status')).toHaveText('The password is changed. Your other sessions have ended.')
  await expect(page.getByRole('row').filter({ hasText: 'bob' })).toHaveCount(1)
  expect((await other.get('api/v1/session')).status()).toBe(401)
  await expectAccessible(page)
  await other.dispose()
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
