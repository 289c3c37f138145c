/**
 * Compiles without a compiler: takes the types away, checks nothing, and writes no declarations. For a checkout that was
 * installed without development dependencies; what runs is the same.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parse } from 'acorn'
import { transform } from 'esbuild'

/**
 * @param {string} from
 * @param {readonly string[]} files relative to it
 * @param {string} to the folder in which each becomes a `.js`
 */
export async function stripTypes(from, files, to) {
  for (const file of files) {
    const source = readFileSync(join(from, file), 'utf8')
    const tsconfigRaw = { compilerOptions: { verbatimModuleSyntax: true } }
    const jsx = { jsx: 'automatic', jsxImportSource: 'hono/jsx' }
    const loader = file.endsWith('.tsx') ? 'tsx' : 'ts'
    const { code } = await transform(source, { loader, ...jsx, format: 'esm', target: 'es2023', tsconfigRaw })
    const program = join(to, file.replace(/\.tsx?$/, '.js'))
    mkdirSync(dirname(program), { recursive: true })
    writeFileSync(program, withCompiledImports(code))
  }
}

/** `./x.ts` becomes `./x.js` where a module is imported, as `rewriteRelativeImportExtensions` of TypeScript does. */
function withCompiledImports(/** @type {string} */ code) {
  const program = parse(code, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true })
  const found = sourcesIn(program).sort((a, b) => b.end - a.end)
  for (const { end, value } of found) {
    const [, ending] = /^\.{1,2}\/.*(\.tsx?)$/.exec(value) ?? []
    if (ending) code = `${code.slice(0, end - 1 - ending.length)}.js${code.slice(end - 1)}`
  }
  return code
}

/** The texts that name modules. */
function sourcesIn(/** @type {any} */ node) {
  if (Array.isArray(node)) return node.flatMap(sourcesIn)
  if (typeof node !== 'object' || node === null) return []
  const own = /^(Import|Export)/.test(node.type) && typeof node.source?.value === 'string' ? [node.source] : []
  return [...own, ...Object.values(node).flatMap(sourcesIn)]
}
