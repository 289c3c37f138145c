/**
 * The form of all functions in design documents:
 *
 *     (function() {
 *       "use strict";
 *       …the bundle…
 *       return the_default_export;
 *     })()
 *
 * This expression evaluates to a function. CouchDB's SpiderMonkey parses it with esprima and rewrites it. QuickJS and
 * PouchDB evaluate it unchanged. On CouchDB the bundle runs once, not for each document. It is strict, like a module.
 */
import { parse, type Position, type Program, type AnyNode, type Node } from 'acorn'
import { transform } from 'esbuild'
import type { Bundle, Target } from './bundle.ts'
import { DeployError, refuseBroken } from './deploy-errors.ts'
import { freeNames } from './free-names.ts'
import { isAvailable, missingFault } from './language-names.ts'

/** Expression of a bundle's default export; within `withEsbuild`. Throws `DeployError` if an engine cannot run it. */
export async function toExpression(bundle: Bundle, target: Target): Promise<string> {
  const program = parseModule(bundle)
  const exported = defaultExportOf(program, bundle)
  refuseBroken([...syntaxFaults(program, bundle), ...nameFaults(program, bundle)])

  const body = bundle.code.slice(0, exported.start) + bundle.code.slice(exported.end)
  const wrapped = `(function () { "use strict"; ${body}\nreturn ${exported.value} })()`
  const { code } = await transform(wrapped, { charset: 'ascii', legalComments: 'none' }) // formatted for readers
  const text = code.trim().replace(/;$/, '')
  if (target === 'es5') prove(text, bundle)
  return text
}

/** Parses the bundle. Throws `DeployError` if it is not ES2017. */
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

/** Position of esbuild's only export statement, and the expression of the default export. */
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
  [...freeNames(program)]
    .filter(([name]) => !isAvailable(name))
    .map(([name, node]) => missingFault(bundle.placeOf(node.loc?.start), name))

/**
 * Valid ES2017 that fails. CouchDB with SpiderMonkey parses a function with esprima and prints it with an old
 * escodegen, which breaks a few constructs. QuickJS has no promises. Several hundred libraries went through CouchDB's
 * own copies of both tools: a comparison of the syntax trees gave this list.
 */
const broken: readonly { readonly is: (node: AnyNode) => boolean; readonly fault: string }[] = [
  {
    is: (node) => 'async' in node && node.async,
    fault: 'CouchDB has no async functions: a function must finish before it returns',
  },
  {
    is: (node) =>
      node.type === 'ObjectPattern' &&
      node.properties.some((part) => part.type === 'Property' && isRenamedDefault(part.value, part.shorthand)),
    fault: "CouchDB's SpiderMonkey breaks on { a: b = 1 } on the left of =: set the default in a statement of its own",
  },
  {
    is: (node) => node.type === 'MetaProperty',
    fault: "CouchDB's SpiderMonkey breaks on new.target: do without",
  },
  {
    is: (node) => 'computed' in node && 'key' in node && node.key.type === 'SequenceExpression',
    fault: "CouchDB's SpiderMonkey breaks on a comma in a computed name (private fields become one): do without",
  },
  {
    is: (node) => node.type === 'ForStatement' && [...nodesOf(node.init)].some(isIn),
    fault: "CouchDB's SpiderMonkey breaks on the operator in at the head of a for: use it before the loop",
  },
]

const isRenamedDefault = (value: AnyNode, shorthand: boolean) => value.type === 'AssignmentPattern' && !shorthand

const isIn = (node: AnyNode) => node.type === 'BinaryExpression' && node.operator === 'in'

/** One fault, with its position, for each construct that fails in an engine. */
const syntaxFaults = (program: Program, bundle: Bundle): string[] =>
  [...nodesOf(program)].flatMap((node) =>
    broken.filter(({ is }) => is(node)).map(({ fault }) => `${bundle.placeOf(node.loc?.start)}: ${fault}`),
  )

function* nodesOf(value: unknown): Generator<AnyNode> {
  if (typeof value !== 'object' || value === null) return
  if (isSyntaxNode(value)) yield value as AnyNode
  for (const child of Object.values(value)) yield* nodesOf(child)
}

const isSyntaxNode = (value: object): value is Node => 'type' in value && 'start' in value
