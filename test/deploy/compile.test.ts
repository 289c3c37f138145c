import { readFileSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'acorn'
import typescript from 'typescript'
import { describe, expect, test } from 'vitest'
import { compileDdocs, ddocsFolder, type CompileOptions } from '../../sidecar/deploy/compile.ts'
import { DeployError } from '../../sidecar/deploy/errors.ts'
import { controlMachines } from '../../ddocs/machines.ts'
import { ddocFolder } from './folder.ts'

/** The design document `app` of these files. */
const compileApp = async (files: Record<string, string>, options: Partial<CompileOptions> = {}) => {
  const own = Object.fromEntries(Object.entries(files).map(([path, text]) => [`app/${path}`, text]))
  const [doc] = await compileDdocs({ folder: ddocFolder(own), ...options })
  return doc!
}

const faultsOf = async (
  files: Record<string, string>,
  options?: Partial<CompileOptions>,
): Promise<readonly string[]> => {
  const thrown: unknown = await compileApp(files, options).then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(thrown).toBeInstanceOf(DeployError)
  expect((thrown as DeployError).code).toBe('ddocs_broken')
  return (thrown as DeployError).faults
}

const run = (expression: unknown): unknown => (0, eval)(String(expression))

describe('a design document', () => {
  test('has a field for each file, in the couchapp layout', async () => {
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

  test('holds no file that is only imported, declares types, or is hidden', async () => {
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

  test('keeps attachments as they are, and an id of its own', async () => {
    const doc = await compileApp({ '_attachments/index.js': 'alert(1)', _id: '_design/other' })
    expect(doc._id).toBe('_design/other')
    expect(doc._attachments).toEqual({
      'index.js': { content_type: 'application/javascript', data: Buffer.from('alert(1)').toString('base64') },
    })
  })

  test('gets the machines of its database', async () => {
    const machines = { order: { paid: { mode: 'safe', create: 'client' } } } as const
    const [doc] = await compileDdocs({ folder: ddocsFolder('docstate'), machines })
    expect(doc).toMatchObject({ _id: '_design/docstate', machines })
  })

  test('leaves nothing in the folder for temporary files', async () => {
    const ours = () => readdirSync(tmpdir()).filter((name) => name.startsWith('couchdb-sidecar-'))
    const before = ours()
    await compileApp({ 'a.json': '1' })
    await faultsOf({ 'views/v/map.ts': 'export default () => { throw new Error("no") }' })
    expect(ours()).toEqual(before)
  })
})

describe('a function', () => {
  test('becomes one expression of ES2017 with all that it imports', async () => {
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

  test('is read once, however many documents it sees', async () => {
    const doc = await compileApp({ 'filters/count.ts': 'let seen = 0\nexport default () => ++seen > 1' })
    const filter = run((doc.filters as { count: string }).count) as () => boolean
    expect([filter(), filter()]).toEqual([false, true])
  })

  test('has the same text wherever it lies, also when the compiler has been over it', async () => {
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

  test('can be a CommonJS module', async () => {
    const doc = await compileApp({ 'filters/all.js': 'module.exports = function () { return true }' })
    expect((run((doc.filters as { all: string }).all) as () => boolean)()).toBe(true)
  })
})

describe('a fault', () => {
  test('of the syntax is told with its place', async () => {
    const [fault] = await faultsOf({ 'views/v/map.ts': '\nexport default (doc => emit(1)' })
    expect(fault).toMatch(/app\/views\/v\/map\.ts:2:\d+: Expected "\)"/)
  })

  test('in JSON is told with its place', async () => {
    expect((await faultsOf({ 'a.json': '{\n  "a": 1,\n}' }))[0]).toMatch(/app\/a\.json:2:\d+: .*trailing comma/)
  })

  test('of an import that is not there is told with its place', async () => {
    const [fault] = await faultsOf({ 'filters/a.ts': "import { b } from './b.ts'\nexport default () => b" })
    expect(fault).toMatch(/app\/filters\/a\.ts:1:\d+: Could not resolve "\.\/b\.ts"/)
  })

  test('is told together with those of other files', async () => {
    const faults = await faultsOf({
      'filters/a.ts': 'export default () => fetch("x")',
      'filters/b.ts': 'export default () => console.log(process.pid)',
    })
    expect(faults).toHaveLength(3)
  })

  test.each([
    ['console.log(doc)', 'console', 'log()'],
    ['setTimeout(() => emit(1), 5)', 'setTimeout', 'done when it returns'],
    ['Promise.resolve(1)', 'Promise', 'done when it returns'],
    ['emit(process.env.HOME)', 'process', 'no Node'],
    ['emit(Buffer.from("a"))', 'Buffer', 'plain JavaScript'],
    ['emit(new Intl.Collator())', 'Intl', 'QuickJS'],
    ['emit(new Uint8Array(1))', 'Uint8Array', 'QuickJS'],
    ['emit(new Proxy({}, {}))', 'Proxy', 'QuickJS'],
    ['emit(globalThis.x)', 'globalThis', 'name the global'],
    ['emit(constructor)', 'constructor', 'do without'],
    ['emit(undeclared)', 'undeclared', 'do without'],
  ])('of a name that CouchDB lacks is told with its place, and what to do: %s', async (code, name, advice) => {
    const [fault, ...others] = await faultsOf({
      '_lib/deep.js': `export function work(doc) {\n  ${code}\n}`,
      'views/v/map.ts': "import { work } from '../../_lib/deep.js'\nexport default (doc: object) => work(doc)",
    })
    expect(others).toEqual([])
    expect(fault).toMatch(/app\/_lib\/deep\.js:2:\d+: CouchDB has no /)
    expect(fault).toContain(` ${name} `)
    expect(fault).toContain(advice)
  })

  test.each([
    ['async () => 1', 'async functions'],
    ['({ a: b = 1 }) => b', '{ a: b = 1 }'],
    ['function () { return new.target }', 'new.target'],
    ['() => { for (var a = (() => 1 in {}); ;) return a }', 'operator in'],
    ['() => { class A { [(0, "a")]() {} } }', 'comma in a computed name'],
    ['() => /(?<=a)b/', 'not ES2017: Invalid regular expression'],
    ['() => /./s', 'not ES2017: Invalid regular expression flag'],
    ['() => 10n', 'ig integer literals are not available'],
  ])('of syntax that an engine stumbles over is told with its place: %s', async (code, expected) => {
    const faults = await faultsOf({ 'filters/a.js': `export default ${code}` })
    expect(faults.join()).toContain(expected)
    expect(faults[0]).toMatch(/app\/filters\/a\.js:1:\d+: /)
  })

  test('of a module without a default export is told with the rule', async () => {
    expect((await faultsOf({ 'filters/a.ts': 'export const a = 1' }))[0]).toMatch(
      /expected a default export.*begins with _/,
    )
  })

  test('of a module that throws when it is read is told', async () => {
    expect((await faultsOf({ 'a.ts': 'export default JSON.parse("{")' }))[0]).toMatch(/app\/a\.ts: threw .*SyntaxError/)
  })

  test('of two files for one field is told', async () => {
    const [fault] = await faultsOf({ 'filters/a.ts': 'export default () => true', 'filters/a.json': '1' })
    expect(fault).toContain('the same field')
  })

  test.each([['absent'], ['empty']])('of a folder that is %s is told with its name', async (kind) => {
    const folder = kind === 'empty' ? ddocFolder({ 'lib.ts': '' }) : '/absent/ddocs'
    await expect(compileDdocs({ folder })).rejects.toThrow(`${folder}: expected a folder`)
  })
})

describe('for SpiderMonkey 1.8.5', () => {
  test('what can be said in ES5 is', async () => {
    const doc = await compileApp(
      {
        'filters/a.ts': 'var limit: number = 3\nexport default function (doc: { n: number }) { return doc.n < limit }',
      },
      { target: 'es5' },
    )
    expect(() => parse((doc.filters as { a: string }).a, { ecmaVersion: 5 })).not.toThrow()
  })

  test('the rest is refused, naming the construct and its place', async () => {
    const [fault] = await faultsOf(
      { 'filters/a.ts': 'export default () => { const a = 1; return a }' },
      { target: 'es5' },
    )
    expect(fault).toMatch(/app\/filters\/a\.ts:1:\d+: Transforming const to the configured target environment/)
  })
})

test("the control database's design document guards it by the machines that it holds", async () => {
  const [doc] = await compileDdocs({ folder: ddocsFolder('control') })
  expect(doc).toEqual({
    _id: '_design/docstate',
    machines: controlMachines,
    validate_doc_update: expect.any(String) as string,
    views: { by_state: { map: expect.any(String) as string, reduce: '_count' } },
  })
})
