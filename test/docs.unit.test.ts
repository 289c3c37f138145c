/** Every reference in the docs exists: pages, headings, source files and tests. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const pagesIn = (folder: string) =>
  readdirSync(folder).flatMap((name) => (name.endsWith('.md') ? [join(folder, name)] : []))
const pages = ['.', 'docs', 'docs/designs', 'client', 'bench'].flatMap(pagesIn)

/** The anchors that GitHub and other Markdown viewers generate. */
const headingsOf = (page: string): string[] =>
  [...readFileSync(page, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )

const files = ['sidecar', 'ddocs', 'client', 'embedded', 'test', 'bench', 'tools', 'examples'].flatMap((folder) =>
  readdirSync(folder, { encoding: 'utf8', recursive: true })
    .filter((path) => !path.includes('node_modules'))
    .map((path) => join('/', folder, path)),
)
/** Files of users, which appear in examples. */
const isExample = (path: string) => /(^|\/)(orders|shop)(\/|\.ts$)/.test(path)

test.each(pages)('%s', (page) => {
  const text = readFileSync(page, 'utf8')
  const links = [...text.matchAll(/\]\((?!\w+:)([^)#\s]*)(?:#([^)]*))?\)/g)].map(([, path, heading]) => {
    const target = path ? join(dirname(page), path) : page
    return existsSync(target) && (!heading || headingsOf(target).includes(heading))
      ? []
      : [`${target}#${heading ?? ''}`]
  })
  const tests = [...text.matchAll(/`([\w/.-]+\.test\.ts)`/g)].map(([, path]) =>
    existsSync(join('test', path!)) || existsSync(path!) ? [] : [path],
  )
  const code = [...text.matchAll(/`([\w./-]+\.tsx?)`/g)].flatMap(([, path]) =>
    isExample(path!) || path!.includes('.test.') || files.some((file) => file.endsWith(`/${path}`)) ? [] : [path],
  )
  expect([...links, ...tests, ...code].flat()).toEqual([])
})

test('every page that the code refers to exists', () => {
  const missing = files
    .filter((file) => /\.[cm]?[jt]sx?$/.test(file) && !file.includes('/dist/'))
    .flatMap((file) => [...readFileSync(join('.', file), 'utf8').matchAll(/\bdocs\/[\w/-]+\.md\b/g)].map(String))
    .filter((page) => !existsSync(page))
  expect([...new Set(missing)]).toEqual([])
})
