import { defineConfig, devices } from '@playwright/test'

/** Where sessions and reports go. */
export const results = process.env.WINDLASS_RESULTS ?? 'test-results'

/** Run against a server: WINDLASS_URL is its address, WINDLASS_LINK the secret of a login link. */
export default defineConfig({
  testDir: 'tests/browser',
  outputDir: `${results}/output`,
  workers: 1,
  timeout: 180_000,
  // A machine that builds and tests other things beside.
  expect: { timeout: 20_000 },
  use: {
    ...devices['Desktop Chrome'],
    baseURL: (process.env.WINDLASS_URL ?? 'http://127.0.0.1:7480').replace(/\/?$/, '/'),
    locale: 'en-US',
    launchOptions: { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] },
  },
  projects: [
    { name: 'sign in', testMatch: 'login.spec.ts' },
    { name: 'views', testIgnore: 'login.spec.ts', dependencies: ['sign in'], use: { storageState: `${results}/session.json` } },
  ],
})
