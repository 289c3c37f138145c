import { parse } from 'acorn'
import { describe, expect, test } from 'vitest'
import { compileDdocs } from '../../sidecar/deploy/compile.ts'
import { compileApp, ddocFolder, faultsOf } from './folder.ts'

describe('faults of a design document', () => {
  test('a syntax error is reported with its position', async () => {
    const [fault] = await faultsOf({ 'views/v/map.ts': '\nexport default (doc => emit(1)' })
    expect(fault).toMatch(/app\/views\/v\/map\.ts:2:\d+: Expected "\)"/)
  })

  test('a JSON error is reported with its position', async () => {
    expect((await faultsOf({ 'a.json': '{\n  "a": 1,\n}' }))[0]).toMatch(/app\/a\.json:2:\d+: .*trailing comma/)
  })

  test('a missing import is reported with its position', async () => {
    const [fault] = await faultsOf({ 'filters/a.ts': "import { b } from './b.ts'\nexport default () => b" })
    expect(fault).toMatch(/app\/filters\/a\.ts:1:\d+: Could not resolve "\.\/b\.ts"/)
  })

  test('faults of several files are reported together', async () => {
    const faults = await faultsOf({
      'filters/a.ts': 'export default () => fetch("x")',
      'filters/b.ts': 'export default () => console.log(process.pid)',
    })
    expect(faults).toHaveLength(3)
  })

  test.each([
    ['console.log(doc)', 'console', 'log()'],
    ['setTimeout(() => emit(1), 5)', 'setTimeout', 'finish before it returns'],
    ['Promise.resolve(1)', 'Promise', 'finish before it returns'],
    ['emit(process.env.HOME)', 'process', 'no Node'],
    ['emit(Buffer.from("a"))', 'Buffer', 'plain JavaScript'],
    ['emit(new Intl.Collator())', 'Intl', 'QuickJS'],
    ['emit(new Uint8Array(1))', 'Uint8Array', 'QuickJS'],
    ['emit(new Proxy({}, {}))', 'Proxy', 'QuickJS'],
    ['emit(globalThis.x)', 'globalThis', 'name the global'],
    ['emit(constructor)', 'constructor', 'do without'],
    ['emit(undeclared)', 'undeclared', 'do without'],
    ['emit(class Foo {}, Foo)', 'Foo', 'do without'],
    ['emit(class Foo { who() { return process } })', 'process', 'no Node'],
  ])('a name that CouchDB lacks is reported with its position and advice: %s', async (code, name, advice) => {
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
    ['a name that no engine has, behind &&', 'typeof setTimeout === "function" && setTimeout(f, 1)'],
    ['a name that some engines have, in a conditional', 'typeof Promise === "function" ? Promise.name : ""'],
    ['a name that some engines have, compared with undefined', 'typeof Promise === "undefined" ? "" : Promise.name'],
    ['a name that some engines have, compared by order', 'typeof Promise < "u" && Promise.name'],
    [
      'two names, one after the other',
      'typeof window !== "undefined" ? window : typeof self !== "undefined" ? self : null',
    ],
    [
      'two names that must both exist',
      '!(typeof Promise === "undefined" || !(typeof Proxy === "function")) && new Proxy(Promise, {})',
    ],
    ['a name in a longer condition', 'typeof define === "function" && define.amd ? define(f) : 0'],
    ['a constant with the result of the check', 'inBrowser ? window.name : 0'],
    ['a variable in its own declaration', '(function () { var a = a || typeof window === "object"; return a && 1 })()'],
    ['an early return', '(function () { if (typeof Promise === "undefined") return 0; return Promise.name })()'],
    [
      'a function inside of the checked branch',
      'typeof Promise === "function" ? [1].map(function () { return Promise.name }) : 0',
    ],
  ])('a name that CouchDB lacks is accepted behind a check with typeof: %s', async (_, code) => {
    const file = `const inBrowser = typeof window !== "undefined"\nconst f = () => 1\nexport default (doc) => ${code}`
    expect(await compileApp({ 'filters/a.js': file })).toHaveProperty('filters.a')
  })

  test.each([
    ['in the branch where the name is missing', 'typeof Promise === "function" ? 0 : Promise.name', 'Promise'],
    ['after a check of another name', 'typeof Promise === "function" && new Proxy({}, {})', 'Proxy'],
    [
      'after a check that either name satisfies',
      '(typeof Promise === "function" || typeof Proxy === "function") && Promise.name',
      'Promise',
    ],
    ['in a branch that every engine takes', 'typeof window === "undefined" ? window.name : 0', 'window'],
    ['outside of the check', '(typeof Promise === "function" && 1) + Promise.name', 'Promise'],
    [
      'before the early return',
      '(function () { const a = Promise.name; if (typeof Promise === "undefined") return 0; return a })()',
      'Promise',
    ],
    ['after a check in a variable that changes', 'changing && window.name', 'window'],
    [
      'in a function that the branch without the name calls',
      '(function () { if (typeof window === "undefined") return f(); function f() { return process } })()',
      'process',
    ],
  ])('a name that CouchDB lacks is still a fault, even with typeof: %s', async (_, code, name) => {
    const file = `let changing = typeof window !== "undefined"\nexport const set = () => { changing = !changing }\nexport default (doc) => (set(), ${code})`
    expect(await faultsOf({ 'filters/a.js': file })).toEqual([expect.stringContaining(`CouchDB has no ${name} `)])
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
  ])('syntax that an engine cannot parse is reported with its position: %s', async (code, expected) => {
    const faults = await faultsOf({ 'filters/a.js': `export default ${code}` })
    expect(faults.join()).toContain(expected)
    expect(faults[0]).toMatch(/app\/filters\/a\.js:1:\d+: /)
  })

  test('a module without a default export is reported with the rule', async () => {
    expect((await faultsOf({ 'filters/a.ts': 'export const a = 1' }))[0]).toMatch(
      /expected a default export.*begins with _/,
    )
  })

  test('a module that throws while it loads is reported', async () => {
    expect((await faultsOf({ 'a.ts': 'export default JSON.parse("{")' }))[0]).toMatch(/app\/a\.ts: threw .*SyntaxError/)
  })

  test('two files for one field are reported', async () => {
    const [fault] = await faultsOf({ 'filters/a.ts': 'export default () => true', 'filters/a.json': '1' })
    expect(fault).toContain('the same field')
  })

  test.each([['absent'], ['empty']])('a folder that is %s is reported with its name', async (kind) => {
    const folder = kind === 'empty' ? ddocFolder({ 'lib.ts': '' }) : '/absent/ddocs'
    await expect(compileDdocs({ folder })).rejects.toThrow(`${folder}: expected a folder`)
  })
})

describe('compiling for SpiderMonkey 1.8.5', () => {
  test('code that ES5 can express is compiled', async () => {
    const doc = await compileApp(
      {
        'filters/a.ts': 'var limit: number = 3\nexport default function (doc: { n: number }) { return doc.n < limit }',
      },
      { target: 'es5' },
    )
    expect(() => parse((doc.filters as { a: string }).a, { ecmaVersion: 5 })).not.toThrow()
  })

  test('other code is refused with the construct and its position', async () => {
    const [fault] = await faultsOf(
      { 'filters/a.ts': 'export default () => { const a = 1; return a }' },
      { target: 'es5' },
    )
    expect(fault).toMatch(/app\/filters\/a\.ts:1:\d+: Transforming const to the configured target environment/)
  })
})
