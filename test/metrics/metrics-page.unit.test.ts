import { readFile } from 'node:fs/promises'
import { format, resolveConfig } from 'prettier'
import { expect, test } from 'vitest'
import { GROUPS } from '../../tools/metric-groups.ts'
import { renderMetrics } from '../../tools/render-metrics.ts'

const page = new URL('../../docs/metrics.md', import.meta.url).pathname
const TABLES = /(?<=<!-- made from tools\/metric-groups.*-->\n)[^]*(?=<!-- end of the tables -->)/

/** With `--update` the test rewrites the page. */
test('docs/metrics.md lists the current metrics', async () => {
  const written = await readFile(page, 'utf8')
  expect(written).toMatch(TABLES)
  const text = written.replace(TABLES, () => `\n${renderMetrics()}\n\n`)
  const formatted = await format(text, { ...(await resolveConfig(page)), filepath: page })
  await expect(formatted).toMatchFileSnapshot(page)
})

test('every metric that the page names outside of its tables exists', async () => {
  const named = (await readFile(page, 'utf8')).replace(TABLES, '').match(/couchdb_sidecar_\w+/g)!
  const names = GROUPS.flatMap(({ prefix, metrics }) => Object.keys(metrics).map((name) => prefix + name))
  expect(named.length).toBeGreaterThan(3)
  for (const name of named) expect(names).toContain(name.replace(/_(bucket|sum|count)$/, ''))
})
