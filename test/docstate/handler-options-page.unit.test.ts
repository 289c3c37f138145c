import { readFile } from 'node:fs/promises'
import { format, resolveConfig } from 'prettier'
import { expect, test } from 'vitest'
import { handlerDefaults } from '../../sidecar/docstate/handler-options.ts'
import { OPTIONS, renderHandlerOptions } from '../../tools/render-handler-options.ts'

const page = new URL('../../docs/handler-options.md', import.meta.url).pathname
const tableOf = (type: keyof typeof OPTIONS) =>
  new RegExp(`(?<=<!-- ${type}, made from ${OPTIONS[type]}.*-->\n)[^]*?(?=<!-- end of the table -->)`)

/** `vitest --update` rewrites the page. */
test('docs/handler-options.md matches the declared options', async () => {
  const written = await readFile(page, 'utf8')
  let text = written
  for (const type of Object.keys(OPTIONS) as (keyof typeof OPTIONS)[]) {
    expect(written).toMatch(tableOf(type))
    text = text.replace(tableOf(type), () => `\n${renderHandlerOptions(type)}\n\n`)
  }
  const formatted = await format(text, { ...(await resolveConfig(page)), filepath: page })
  await expect(formatted).toMatchFileSnapshot(page)
})

test('the table lists every option with its default', () => {
  const { timeoutMs, ...values } = handlerDefaults
  expect(timeoutMs).toBe(300_000)
  const others = { ...values, globalConcurrency: undefined, key: undefined, limit: undefined, version: undefined }
  const rows = renderHandlerOptions().split('\n').slice(2)
  const shown = new Map(rows.map((row) => [/`(\w+)`/.exec(row)![1]!, row]))
  expect([...shown.keys()].sort()).toEqual(['timeout', ...Object.keys(others)].sort())
  for (const [name, value] of Object.entries(others)) {
    const [, byDefault] = /^(?:[^|]|\\\|)*\|(?:[^|]|\\\|)*\|(?:[^|]|\\\|)*\| `([^`]+)` \|/.exec(shown.get(name)!)!
    expect((0, eval)(`(${byDefault})`), name).toEqual(value)
  }
})
