import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { en } from '../../src/locales/en'
import { zh } from '../../src/locales/zh'

vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => {} })
const { fill } = await import('../../src/lib/i18n.svelte')

const texts = en as Record<string, string>
const places = (text: string) => [...new Set(text.match(/\{\w+\}/g))].sort()

it('has the same texts in both languages', () => {
  expect(Object.keys(zh)).toEqual(Object.keys(en))
})

it('has the same values in the texts of both languages', () => {
  for (const [key, text] of Object.entries(zh)) {
    expect(text, key).not.toBe('')
    expect(places(text), key).toEqual(places(texts[key]!))
  }
})

it('fills in values and chooses between one and many', () => {
  expect(fill('1 host|{n} hosts', { n: 1 })).toBe('1 host')
  expect(fill('1 host|{n} hosts', { n: 0 })).toBe('0 hosts')
  expect(fill('{a} and {b}', { a: '{b}', b: 2 })).toBe('{b} and 2')
  expect(fill('{a}', { a: 'alice\u202e' })).toBe('alice<U+202E>')
})

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => /\.(svelte|ts)$/.test(name))
const code = sources.filter((name) => !name.startsWith('locales')).map((name) => readFileSync(join('src', name), 'utf8')).join('\n')

it('uses every text', () => {
  const prefixes = [...code.matchAll(/tOr\('(\w+)'|t\(`([\w.]+)\.\$/g)].map((match) => `${match[1] ?? match[2]}.`)
  const unused = Object.keys(en).filter((key) => !code.includes(`'${key}'`) && !prefixes.some((prefix) => key.startsWith(prefix)))
  expect(unused).toEqual([])
})

it('makes no HTML out of text', () => {
  expect(code).not.toMatch(/\{@html|innerHTML|insertAdjacentHTML|document\.write/)
})
