import { readFile } from 'node:fs/promises'
import { format, resolveConfig } from 'prettier'
import { expect, test } from 'vitest'
import { describeSettings } from '../../sidecar/config.ts'
import { renderSettings } from '../../tools/render-settings.ts'

const page = new URL('../../docs/settings.md', import.meta.url).pathname
const TABLE = /(?<=<!-- made from sidecar\/config\/settings.ts.*-->\n)[^]*(?=<!-- end of the table -->)/

/** With `--update` the test updates the page. */
test('docs/settings.md shows the current settings', async () => {
  const written = await readFile(page, 'utf8')
  expect(written).toMatch(TABLE)
  const text = written.replace(TABLE, () => `\n${renderSettings(describeSettings())}\n\n`)
  const formatted = await format(text, { ...(await resolveConfig(page)), filepath: page })
  await expect(formatted).toMatchFileSnapshot(page)
})

test('the table has a row for each setting, with the file that may hold a secret', () => {
  const text = renderSettings([
    {
      name: 'COUCHDB_URL',
      flag: '--couchdb-url',
      argument: 'url',
      default: 'none | embedded',
      meaning: 'the server',
      fromFile: true,
    },
    {
      name: 'SIDECAR_PORT',
      flag: '--port',
      argument: 'port',
      default: '5985',
      meaning: 'where it listens',
      fromFile: false,
    },
  ])
  expect(text.split('\n').slice(2)).toEqual([
    '| `COUCHDB_URL` | `--couchdb-url <url>` | none \\| embedded | the server | `COUCHDB_URL_FILE` |',
    '| `SIDECAR_PORT` | `--port <port>` | 5985 | where it listens |  |',
  ])
})
