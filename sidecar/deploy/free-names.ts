/**
 * Which names a bundle takes from outside, as far as it gets there. Packages that run anywhere ask first (UMD):
 *
 *     typeof exports === 'object' && typeof module !== 'undefined' ? (module.exports = factory())
 *       : typeof define === 'function' && define.amd ? define(factory)
 *       : ((typeof globalThis !== 'undefined' ? globalThis : self).slug = factory())
 *
 * A name that no engine has makes such a question false, and one that esbuild gives to a package (`exports`, `module`)
 * makes it true: what follows is never reached. Of a name that some engines have both ways are looked at, and on the one it is
 * there.
 */
import type { AnyNode, Identifier, Program, UnaryExpression } from 'acorn'
import isReference from 'is-reference'
import { analyze, type Scope } from 'periscopic'
import { isAvailable, isOnSomeEngines } from './language-names.ts'

/** The names that are used and nowhere declared, each with the first place of its use. */
export function freeNames(program: Program): Map<string, Identifier> {
  const found = new Map<string, Identifier>()
  const tree = new ScopedTree(program)

  /** @param there the names that are there, as the questions before have shown */
  function visit(node: AnyNode, parent: AnyNode | undefined, outer: Scope, there: Names): void {
    const scope = tree.scopeOf(node) ?? outer
    const go = (child: AnyNode | null | undefined, names = there) => child && visit(child, node, scope, names)
    if (node.type === 'Identifier') {
      const { name } = node
      if (!there.has(name) && !scope.find_owner(name) && isUse(node, parent) && !found.has(name)) found.set(name, node)
    } else if (node.type === 'ConditionalExpression' || node.type === 'IfStatement') {
      const { value, ifTrue, ifFalse } = judge(tree, node.test, scope)
      go(node.test)
      if (value !== false) go(node.consequent, union(there, ifTrue))
      if (value !== true) go(node.alternate, union(there, ifFalse))
    } else if (node.type === 'LogicalExpression') {
      const { value, ifTrue, ifFalse } = node.operator === '??' ? UNKNOWN : judge(tree, node.left, scope)
      const isOr = node.operator === '||'
      go(node.left)
      if (value !== isOr) go(node.right, union(there, isOr ? ifFalse : ifTrue))
    } else if (node.type === 'BlockStatement' || node.type === 'Program') {
      let names = there
      let isOver = false
      for (const statement of node.body) {
        if (isOver && statement.type !== 'FunctionDeclaration') continue // which is known above, too
        go(statement, names)
        if (!isExit(statement)) continue
        const { value, ifFalse } = judge(tree, statement.test, scope)
        names = union(names, ifFalse)
        isOver ||= value === true
      }
    } else if (!isTypeof(node)) {
      // The name of a class is known inside, where periscopic takes it for a global (its issue 32).
      const names = node.type === 'ClassExpression' && node.id ? union(there, new Set([node.id.name])) : there
      for (const child of childrenOf(node)) go(child, names)
    }
  }

  visit(program, undefined, tree.scope, NONE)
  return found
}

type Names = ReadonlySet<string>
const NONE: Names = new Set()
const union = (a: Names, b: Names): Names => (b.size === 0 ? a : new Set([...a, ...b]))

/** What is known of a condition. */
interface Known {
  /** Undefined: it may be either. */
  readonly value?: boolean | undefined
  /** Names that are there if it is true. */
  readonly ifTrue: Names
  /** Names that are there if it is false. */
  readonly ifFalse: Names
}

const UNKNOWN: Known = { ifTrue: NONE, ifFalse: NONE }

/** @param within the constants that are being judged: `var x = x || {}` */
function judge(tree: ScopedTree, test: AnyNode, scope: Scope, within: readonly AnyNode[] = []): Known {
  const judged = (part: AnyNode) => judge(tree, part, scope, within)
  if (test.type === 'Literal') return { ...UNKNOWN, value: Boolean(test.value) }
  if (test.type === 'UnaryExpression' && test.operator === '!') return not(judged(test.argument))
  if (test.type === 'BinaryExpression') return judgeTypeof(tree, test, scope)
  if (test.type === 'LogicalExpression' && test.operator !== '??') {
    const [left, right] = [judged(test.left), judged(test.right)]
    return test.operator === '&&' ? and(left, right) : not(and(not(left), not(right)))
  }
  const set = test.type === 'Identifier' ? tree.constantOf(test.name, scope) : undefined
  return set && !within.includes(set.value) ? judge(tree, set.value, set.scope, [...within, set.value]) : UNKNOWN
}

const not = ({ value, ifTrue, ifFalse }: Known): Known => ({
  value: value === undefined ? undefined : !value,
  ifTrue: ifFalse,
  ifFalse: ifTrue,
})

function and(a: Known, b: Known): Known {
  const ifTrue = union(a.ifTrue, b.ifTrue)
  if (a.value === false || b.value === false) return { value: false, ifTrue, ifFalse: NONE }
  if (a.value === true) return { ...b, ifTrue }
  if (b.value === true) return { ...a, ifTrue }
  return { ifTrue, ifFalse: new Set([...a.ifFalse].filter((name) => b.ifFalse.has(name))) }
}

const comparisons: Readonly<Record<string, (a: string, b: string) => boolean>> = {
  '==': (a, b) => a === b,
  '===': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '!==': (a, b) => a !== b,
  '<': (a, b) => a < b, // typeof x < 'u', as minifiers write it
  '>': (a, b) => a > b,
}

const TYPES = ['undefined', 'object', 'function', 'string', 'number', 'boolean', 'symbol']

/** Of `typeof x === 'function'` and the like. */
function judgeTypeof(tree: ScopedTree, test: AnyNode & { type: 'BinaryExpression' }, scope: Scope): Known {
  const { operator, left, right } = test
  const compare = comparisons[operator]
  const asked = isTypeof(left) ? left : right
  const told = asked === left ? right : left
  if (!compare || !isTypeof(asked) || told.type !== 'Literal' || typeof told.value !== 'string') return UNKNOWN
  const text = told.value
  const { name } = asked.argument
  const holds = (type: string) => (asked === left ? compare(type, text) : compare(text, type))
  const [first, ...others] = tree.typesOf(name, scope).map(holds)
  const names = new Set([name])
  return {
    value: others.every((other) => other === first) ? first : undefined,
    ifTrue: holds('undefined') ? NONE : names,
    ifFalse: holds('undefined') ? names : NONE,
  }
}

/** A program with what is declared where. */
class ScopedTree {
  readonly scope: Scope
  readonly #scopes: WeakMap<object, Scope>
  /** What a variable is set to, by its scope and name: undefined if more than once. */
  readonly #values = new Map<Scope, Map<string, { value: AnyNode; scope: Scope } | undefined>>()
  /** The names that esbuild gives to a package: `__commonJS({ 'path'(exports, module) { … } })`. */
  readonly #given = new Map<Scope, Names>()

  constructor(program: Program) {
    const { scope, map } = analyze(program as Parameters<typeof analyze>[0])
    this.scope = scope
    this.#scopes = map
    this.#note(program, scope)
  }

  scopeOf(node: AnyNode): Scope | undefined {
    return this.#scopes.get(node)
  }

  constantOf(name: string, scope: Scope) {
    const owner = scope.find_owner(name)
    return owner ? this.#values.get(owner)?.get(name) : undefined
  }

  /** What `typeof` may say of a name. */
  typesOf(name: string, scope: Scope): readonly string[] {
    const owner = scope.find_owner(name)
    if (owner) return this.#given.get(owner)?.has(name) ? ['object'] : TYPES
    return isAvailable(name) || isOnSomeEngines(name) ? TYPES : ['undefined']
  }

  #note(node: AnyNode, outer: Scope): void {
    const scope = this.scopeOf(node) ?? outer
    if (node.type === 'VariableDeclarator' && node.init) {
      for (const name of namesIn(node.id)) this.#set(name, scope, node.id.type === 'Identifier' ? node.init : undefined)
    }
    if (node.type === 'AssignmentExpression' || node.type === 'UpdateExpression' || isLoop(node)) {
      for (const name of namesIn(targetOf(node))) this.#set(name, scope)
    }
    const wrapped = packageIn(node)
    const inner = wrapped && this.scopeOf(wrapped)
    if (inner) this.#given.set(inner, new Set(wrapped.params.flatMap(namesIn)))
    for (const child of childrenOf(node)) this.#note(child, scope)
  }

  #set(name: string, scope: Scope, value?: AnyNode): void {
    const owner = scope.find_owner(name)
    if (!owner) return
    const values = this.#values.get(owner) ?? new Map<string, { value: AnyNode; scope: Scope } | undefined>()
    this.#values.set(owner, values.set(name, value && !values.has(name) ? { value, scope } : undefined))
  }
}

type Function_ = AnyNode & { type: 'FunctionExpression' }

/** The function of a package that is written for CommonJS. */
function packageIn(node: AnyNode): Function_ | undefined {
  if (node.type !== 'CallExpression' || node.callee.type !== 'Identifier') return undefined
  if (!/^__commonJS\d*$/.test(node.callee.name)) return undefined
  const [packages] = node.arguments
  const property = packages?.type === 'ObjectExpression' ? packages.properties[0] : undefined
  return property?.type === 'Property' && property.value.type === 'FunctionExpression' ? property.value : undefined
}

const isLoop = (node: AnyNode) => node.type === 'ForInStatement' || node.type === 'ForOfStatement'

/** What an assignment or a loop sets. */
function targetOf(node: AnyNode): AnyNode | undefined {
  if (node.type === 'UpdateExpression') return node.argument
  return 'left' in node ? node.left : undefined
}

/** Every name in a pattern. */
function namesIn(node: AnyNode | undefined): string[] {
  if (!node) return []
  return node.type === 'Identifier' ? [node.name] : childrenOf(node).flatMap(namesIn)
}

function childrenOf(node: AnyNode): AnyNode[] {
  return Object.values(node).flat().filter(isNode)
}

const isNode = (value: unknown): value is AnyNode =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

const isTypeof = (node: AnyNode): node is UnaryExpression & { argument: Identifier } =>
  node.type === 'UnaryExpression' && node.operator === 'typeof' && node.argument.type === 'Identifier'

const isUse = (node: Identifier, parent: AnyNode | undefined): boolean =>
  parent !== undefined && isReference(node, parent as Parameters<typeof isReference>[1])

/** `if (…) return`, and the like: what stands below is reached only if the question is false. */
const isExit = (node: AnyNode): node is AnyNode & { type: 'IfStatement' } =>
  node.type === 'IfStatement' && !node.alternate && leaves(node.consequent)

function leaves(node: AnyNode): boolean {
  if (node.type === 'BlockStatement') return node.body.some(leaves)
  return node.type === 'ReturnStatement' || node.type === 'ThrowStatement'
}
