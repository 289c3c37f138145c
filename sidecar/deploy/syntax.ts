import type { AnyNode, Node, Program } from 'acorn'
import type { Bundle } from './bundle.ts'

/**
 * What is ES2017 and yet does not run. SpiderMonkey's CouchDB parses a function with esprima and prints it anew with an
 * old escodegen, which gets a few constructs wrong; QuickJS has no promises. Found by sending several hundred
 * libraries through CouchDB's own copies and comparing the syntax trees.
 */
const broken: readonly { readonly is: (node: AnyNode) => boolean; readonly fault: string }[] = [
  {
    is: (node) => 'async' in node && node.async,
    fault: 'CouchDB has no async functions: a function must be done when it returns',
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
    fault: "CouchDB's SpiderMonkey breaks on the operator in at the head of a for: ask before the loop",
  },
]

const isRenamedDefault = (value: AnyNode, shorthand: boolean) => value.type === 'AssignmentPattern' && !shorthand

const isIn = (node: AnyNode) => node.type === 'BinaryExpression' && node.operator === 'in'

/** A fault for each construct that an engine would stumble over, at its place. */
export const syntaxFaults = (program: Program, bundle: Bundle): string[] =>
  [...nodesOf(program)].flatMap((node) =>
    broken.filter(({ is }) => is(node)).map(({ fault }) => `${bundle.placeOf(node.loc?.start)}: ${fault}`),
  )

function* nodesOf(value: unknown): Generator<AnyNode> {
  if (typeof value !== 'object' || value === null) return
  if (isNode(value)) yield value as AnyNode
  for (const child of Object.values(value)) yield* nodesOf(child)
}

const isNode = (value: object): value is Node => 'type' in value && 'start' in value
