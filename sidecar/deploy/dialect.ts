/**
 * The one form in which functions are written into design documents:
 *
 *     (function() {
 *       "use strict";
 *       …the bundle…
 *       return the_default_export;
 *     })()
 *
 * An expression that evaluates to a function. SpiderMonkey parses it with esprima and rewrites it, QuickJS and PouchDB
 * evaluate it as it is; on CouchDB the bundle runs once, not once for each document. Strict, because modules are.
 */
import { parse, type Position, type Program } from 'acorn'
import { transform } from 'esbuild'
import type { Bundle, Target } from './bundle.ts'
import { DeployError, refuseBroken } from './errors.ts'
import { freeNames } from './free-names.ts'
import { isAvailable, missingFault } from './names.ts'
import { syntaxFaults } from './syntax.ts'

/** The expression for a bundle's default export; within `withEsbuild`. Throws `DeployError` for what no engine runs. */
export async function toExpression(bundle: Bundle, target: Target): Promise<string> {
  const program = parseModule(bundle)
  const exported = defaultExportOf(program, bundle)
  refuseBroken([...syntaxFaults(program, bundle), ...nameFaults(program, bundle)])

  const body = bundle.code.slice(0, exported.start) + bundle.code.slice(exported.end)
  const wrapped = `(function () { "use strict"; ${body}\nreturn ${exported.value} })()`
  const { code } = await transform(wrapped, { charset: 'ascii', legalComments: 'none' }) // laid out for people to read
  const text = code.trim().replace(/;$/, '')
  if (target === 'es5') prove(text, bundle)
  return text
}

/** Proves that the bundle is ES2017. */
function parseModule(bundle: Bundle): Program {
  try {
    return parse(bundle.code, { ecmaVersion: 2017, sourceType: 'module', locations: true })
  } catch (cause) {
    const { message, loc } = cause as SyntaxError & { loc?: Position }
    const fault = `${bundle.placeOf(loc)}: not ES2017: ${message.replace(/ \(\d+:\d+\)$/, '')}`
    throw new DeployError('ddocs_broken', [fault], { cause })
  }
}

function prove(text: string, { file }: Bundle): void {
  try {
    parse(text, { ecmaVersion: 5, sourceType: 'script' })
  } catch (cause) {
    const fault = `${file}: not ES5, which this server's SpiderMonkey needs: ${(cause as Error).message}`
    throw new DeployError('ddocs_broken', [fault], { cause })
  }
}

/** Where esbuild wrote the exports, and the expression of the default one. It writes them in one statement. */
function defaultExportOf(program: Program, { code, file }: Bundle): { start: number; end: number; value: string } {
  for (const statement of program.body) {
    const { start, end } = statement
    if (statement.type === 'ExportDefaultDeclaration') {
      return { start, end, value: code.slice(statement.declaration.start, statement.declaration.end) }
    }
    if (statement.type !== 'ExportNamedDeclaration') continue
    const specifier = statement.specifiers.find(({ exported }) => textOf(exported) === 'default')
    if (specifier) return { start, end, value: textOf(specifier.local) }
  }
  const fault = `${file}: expected a default export, to become this field of the document; found none (a file that is only imported begins with _ or lies outside)`
  throw new DeployError('ddocs_broken', [fault])
}

const textOf = (name: { type: string; name?: string; value?: unknown }): string => name.name ?? String(name.value)

const nameFaults = (program: Program, bundle: Bundle): string[] =>
  freeNames(program)
    .filter(({ name }) => !isAvailable(name))
    .map(({ name, node, guarded }) => missingFault(bundle.placeOf(node.loc?.start), name, guarded))
