import { readFile } from 'node:fs/promises'
import { format, resolveConfig } from 'prettier'
import { expect, test } from 'vitest'
import { settingsFaults } from '../../ddocs/lib/live-settings.ts'
import { renderLiveSettings } from '../../tools/render-live-settings.ts'

const page = new URL('../../docs/live-settings.md', import.meta.url).pathname
const TABLES = /(?<=<!-- made from ddocs\/lib\/live-settings.ts.*-->\n)[^]*(?=<!-- end of the tables -->)/

/** With `--update` it brings the page up to date. */
test('docs/live-settings.md shows the live settings as they are', async () => {
  const written = await readFile(page, 'utf8')
  expect(written).toMatch(TABLES)
  const text = written.replace(TABLES, () => `\n${renderLiveSettings()}\n\n`)
  const formatted = await format(text, { ...(await resolveConfig(page)), filepath: page })
  await expect(formatted).toMatchFileSnapshot(page)
})

test('the examples of the page are taken and refused as it says', async () => {
  const written = await readFile(page, 'utf8')
  const examples = [...written.matchAll(/-X PUT \S+\/control\/(\S+) -d '(.+)'/g)]
  const faults = examples.map(([, _id, json]) => settingsFaults({ _id, ...(JSON.parse(json!) as object) }))
  const [, reason] = /"error":"forbidden","reason":"(.+)"/.exec(written)!
  expect(faults).toEqual([[], [reason]])
})
