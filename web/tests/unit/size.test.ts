import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'

/** Of `npm run build`, in bytes after gzip -9. */
const LIMITS = { firstScripts: 60_000, firstStyles: 15_000, all: 150_000 }

const size = (name: string) => gzipSync(readFileSync(join('dist', name)), { level: 9 }).length
const sum = (names: string[]) => names.reduce((total, name) => total + size(name), 0)
const index = readFileSync('dist/index.html', 'utf8')
const first = [...index.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map((match) => match[1]!)
const assets = readdirSync('dist/assets').map((name) => `assets/${name}`)

it('loads little for the first view', () => {
  expect(sum(first.filter((name) => name.endsWith('.js')))).toBeLessThan(LIMITS.firstScripts)
  expect(sum(first.filter((name) => name.endsWith('.css')))).toBeLessThan(LIMITS.firstStyles)
})

it('is small in all', () => {
  expect(sum(['index.html', ...assets])).toBeLessThan(LIMITS.all)
})

it('has relative addresses only, and nothing inline', () => {
  expect(index).not.toMatch(/(?:src|href)="(?!\.\/)/)
  expect(index).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=/)
})
