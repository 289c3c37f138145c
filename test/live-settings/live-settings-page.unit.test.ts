import { readFile } from 'node:fs/promises'
import { format, resolveConfig } from 'prettier'
import { expect, test } from 'vitest'
import { settingsFaults } from '../../ddocs/lib/live-settings.ts'
import { renderLiveSettings } from '../../tools/render-live-settings.ts'

const page = new URL('../../docs/live-settings.md', import.meta.url).pathname
const TABLES = /(?<=<!-- made from ddocs\/lib\/live-settings.ts.*-->\n)[^]*(?=<!-- end of the tables -->)/

/** With `--update` the test rewrites the page. */
test('docs/live-settings.md lists the current live settings', async () => {
  const written = await readFile(page, 'utf8')
  expect(written).toMatch(TABLES)
  const text = written.replace(TABLES, () => `\n${renderLiveSettings()}\n\n`)
  const formatted = await format(text, { ...(await resolveConfig(page)), filepath: page })
  await expect(formatted).toMatchFileSnapshot(page)
})

test('the guard accepts and refuses the examples of the page as stated', async () => {
  const written = await readFile(page, 'utf8')
  const examples = [...written.matchAll(/-X PUT \S+\/control\/(\S+) -d '(.+)'/g)]
  const faults = examples.map(([, _id, json]) => settingsFaults({ _id, ...(JSON.parse(json!) as object) }))
  const [, reason] = /"error":"forbidden","reason":"(.+)"/.exec(written)!
  expect(faults).toEqual([[], [reason]])
})
