import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'acorn'
import typescript from 'typescript'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { compileDdocs, ddocsFolder } from '../../sidecar/deploy/compile.ts'
import { controlMachines } from '../../ddocs/machines.ts'
import { compileApp, ddocFolder } from './folder.ts'

const run = (expression: unknown): unknown => (0, eval)(String(expression))

describe('the compiled design document', () => {
  test('a design document has a field for each file, in the couchapp layout', async () => {
    const doc = await compileApp({
      'views/by_name/map.ts': 'export default (doc: { name?: string }) => { if (doc.name) emit(doc.name) }',
      'views/by_name/reduce.ts': "export default '_count'",
      'filters/mine.js': 'export default function (doc) { return doc.mine }',
      'settings.ts': 'export default { limit: 2 ** 3, tags: ["a"] }',
      language: 'javascript\n',
      'package.json': '{ "version": 1 }',
      'notes/readme.md': 'hello',
    })
    expect(doc).toEqual({
      _id: '_design/app',
      views: { by_name: { map: expect.any(String) as string, reduce: '_count' } },
      filters: { mine: expect.any(String) as string },
      settings: { limit: 8, tags: ['a'] },
      language: 'javascript',
      package: { version: 1 },
      notes: { readme: 'hello' },
    })
  })

  test('a design document leaves out files that are imported only, declare types, or are hidden', async () => {
    const doc = await compileApp({
      '_lib/shout.ts': 'export const shout = (text: string): string => text.toUpperCase()',
      'filters/_shared.ts': 'export const yes = true',
      'filters/all.ts': "import { yes } from './_shared.ts'\nexport default () => yes",
      'types.d.ts': 'declare const x: number',
      'filters/all.js.map': '{}',
      '.DS_Store': 'x',
      'views/v/map.ts':
        "import { shout } from '../../_lib/shout.ts'\nexport default (doc: { _id: string }) => emit(shout(doc._id))",
    })
    expect(Object.keys(doc).sort()).toEqual(['_id', 'filters', 'views'])
    expect(Object.keys(doc.filters as object)).toEqual(['all'])
  })

  test('a design document keeps attachments unchanged, and may set another id', async () => {
    const doc = await compileApp({ '_attachments/index.js': 'alert(1)', _id: '_design/other' })
    expect(doc._id).toBe('_design/other')
    expect(doc._attachments).toEqual({
      'index.js': { content_type: 'application/javascript', data: Buffer.from('alert(1)').toString('base64') },
    })
  })

  test('a design document gets the machines of its database', async () => {
    const machines = { order: { paid: { mode: 'safe', create: 'client' } } } as const
    const [doc] = await compileDdocs({ folder: ddocsFolder('docstate'), machines })
    expect(doc).toMatchObject({ _id: '_design/docstate', machines })
    expect(doc).toHaveProperty('validate_doc_update')
  })

  test('a design document without machines has no guard, which keeps writes fast', async () => {
    const [doc] = await compileDdocs({ folder: ddocsFolder('docstate'), machines: {} })
    expect(doc).toHaveProperty('views.by_state.map')
    expect(doc).not.toHaveProperty('validate_doc_update')
  })

  test('the compiler leaves no files in the temporary folder', async () => {
    const temporary = ddocFolder({})
    vi.stubEnv('TMPDIR', temporary)
    onTestFinished(() => void vi.unstubAllEnvs())
    const files = { 'good/a.json': '1', 'bad/views/v/map.ts': 'export default () => { throw new Error("no") }' }
    await expect(compileDdocs({ folder: ddocFolder(files) })).rejects.toThrow('map.ts: threw on')
    // The remaining folders hold this test's own files.
    expect(readdirSync(temporary).filter((name) => !name.startsWith('ddocs-'))).toEqual([])
  })
})

describe('a compiled function', () => {
  test('a function becomes one ES2017 expression with all its imports', async () => {
    const doc = await compileApp({
      '_lib.ts': 'export const first = <T>(list: readonly T[]): T | undefined => list?.[0]',
      'views/v/map.ts': `
        import { first } from '../../_lib.ts'
        interface Doc { readonly tags?: readonly string[]; readonly more?: object }
        export default function (doc: Doc): void { emit(first(doc.tags ?? []) ?? null, { ...doc.more, n: 2 ** 2 }) }`,
    })
    const { map } = (doc.views as { v: { map: string } }).v
    expect(map).toMatch(/^\(function\(\) \{\n  "use strict";\n[^]*\n\}\)\(\)$/)
    expect(parse(map, { ecmaVersion: 2017 }).body).toHaveLength(1)
    expect(map).not.toMatch(/\?\.|\?\?|\*\*|import|interface/)
    expect(run(map)).toBeInstanceOf(Function)
  })

  test('a function keeps its module state between documents', async () => {
    const doc = await compileApp({ 'filters/count.ts': 'let seen = 0\nexport default () => ++seen > 1' })
    const filter = run((doc.filters as { count: string }).count) as () => boolean
    expect([filter(), filter()]).toEqual([false, true])
  })

  test('a function compiles to the same text in any folder, also after the TypeScript compiler', async () => {
    const ddocs = new URL('../../ddocs/', import.meta.url)
    const paths = readdirSync(ddocs, { recursive: true, encoding: 'utf8' }).filter((path) => /(?<!\.d)\.ts$/.test(path))
    const compilerOptions = {
      target: typescript.ScriptTarget.ES2023,
      rewriteRelativeImportExtensions: true,
      verbatimModuleSyntax: true,
    }
    const compiled = paths.map((path) => {
      const { outputText } = typescript.transpileModule(readFileSync(new URL(path, ddocs), 'utf8'), { compilerOptions })
      return [path.replace('.ts', '.js'), outputText] as const
    })
    const folder = ddocFolder(Object.fromEntries(compiled))
    for (const kind of ['control', 'docstate'] as const) {
      expect(await compileDdocs({ folder: join(folder, kind) })).toEqual(
        await compileDdocs({ folder: ddocsFolder(kind) }),
      )
    }
  })

  test('a function may use typeof on a name that CouchDB lacks', async () => {
    const files = { 'filters/a.js': 'export default () => typeof Promise + typeof nothing' }
    const { a } = (await compileApp(files)).filters as { a: string }
    expect(a).toContain('typeof Promise')
  })

  test.each([
    ['const A = class Foo { who() { return Foo.name } }', '"Foo"'],
    ['class A { static me = A; who() { return A.me === A } }', 'true'],
    ['class B { get is() { return "B" } }; const A = class Foo extends B { who() { return super.is } }', '"B"'],
  ])('a function may contain a class with its own name: %s', async (source, said) => {
    const files = { 'filters/a.js': `${source}\nexport default () => new A().who()` }
    const { a } = (await compileApp(files)).filters as { a: string }
    expect(JSON.stringify((run(a) as () => string)())).toBe(said)
  })

  test('a function may be a CommonJS module', async () => {
    const doc = await compileApp({ 'filters/all.js': 'module.exports = function () { return true }' })
    expect((run((doc.filters as { all: string }).all) as () => boolean)()).toBe(true)
  })
})

test("the control database's design document contains its machines, its guard and its views", async () => {
  const [doc] = await compileDdocs({ folder: ddocsFolder('control') })
  const counted = { map: expect.any(String) as string, reduce: '_count' }
  expect(doc).toEqual({
    _id: '_design/docstate',
    machines: controlMachines,
    validate_doc_update: expect.any(String) as string,
    views: { by_state: counted, conflicts: counted, stuck: { ...counted, reduce: '_stats' } },
  })
})
