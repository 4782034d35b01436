import type { Page } from '@playwright/test'
import { endedRun, expect, expectAccessible, open, test } from './page'

/** Presses Tab until the focus is on what has this text. */
async function tabTo(page: Page, text: RegExp) {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement | null
      return element?.getAttribute('aria-label') ?? element?.textContent ?? ''
    })
    if (text.test(focused.trim())) return
  }
  throw new Error(`no ${text} in reach of the keyboard`)
}

test('from the start to the details of a task, by keyboard only', async ({ page, request }) => {
  const run = await endedRun(request)
  await open(page, '/')
  await page.keyboard.press('g')
  await page.keyboard.press('r')
  await expect(page.getByRole('heading', { level: 1, name: 'Runs' })).toBeFocused()

  const link = page.locator(`main a[href="#/runs/${run.id}"]`)
  await expect(link).toBeVisible()
  for (let presses = 0; presses < 200 && !(await link.evaluate((element) => element === document.activeElement)); presses++) await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused()

  await tabTo(page, /^Matrix$/)
  await page.keyboard.press('Enter')
  const grid = page.getByRole('grid')
  await expect(grid).toBeVisible()
  await tabTo(page, /^Tasks by hosts$/)
  const active = () => grid.locator('#active-cell').getAttribute('aria-label')
  const first = await active()
  await page.keyboard.press('ArrowDown')
  await expect.poll(active).not.toBe(first)
  await page.keyboard.press('ArrowUp')
  await expect.poll(active).toBe(first)
  await page.keyboard.press('Control+End')
  await page.keyboard.press('Home')
  await page.keyboard.press('Control+Home')
  await expect.poll(active).toBe(first)
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog')).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await expect(grid).toBeFocused()
})

test('/ goes to the search, ? shows the help, and both can be switched off', async ({ page }) => {
  await open(page, '/')
  await page.keyboard.press('/')
  await expect(page.getByRole('searchbox')).toBeFocused()
  await page.keyboard.type('?/')
  await expect(page.getByRole('searchbox')).toHaveValue('?/')
  await page.keyboard.press('Tab')
  await page.locator('h1').focus()
  await page.keyboard.press('?')
  const dialog = page.getByRole('dialog')
  await expect(dialog).toBeVisible()
  await expectAccessible(page)
  await dialog.getByRole('checkbox').uncheck()
  await page.keyboard.press('Escape')
  await page.locator('h1').focus()
  await page.keyboard.press('?')
  await expect(dialog).toHaveCount(0)
})
