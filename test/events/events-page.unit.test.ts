import { readFile } from 'node:fs/promises'
import { format, resolveConfig } from 'prettier'
import { expect, test } from 'vitest'
import { renderEvents } from '../../tools/render-events.ts'

const page = new URL('../../docs/events.md', import.meta.url).pathname
const TABLES = /(?<=<!-- made from sidecar\/events\/catalogue.ts.*-->\n)[^]*(?=<!-- end of the tables -->)/

/** With `--update` the test updates the page. */
test('docs/events.md shows the current events', async () => {
  const written = await readFile(page, 'utf8')
  expect(written).toMatch(TABLES)
  const text = written.replace(TABLES, () => `\n${renderEvents()}\n\n`)
  const formatted = await format(text, { ...(await resolveConfig(page)), filepath: page })
  await expect(formatted).toMatchFileSnapshot(page)
})
