/** DOM functions for a page without a framework. They insert all text as text, never as markup. */
type Child = Node | string | undefined | false

export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | boolean>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, '')
    else if (value !== false) element.setAttribute(key, value)
  }
  element.append(...children.filter((child): child is Node | string => child !== undefined && child !== false))
  return element
}

/** Shows an error message for six seconds. */
export function notify(text: string): void {
  const notice = document.querySelector<HTMLElement>('#notice')!
  notice.textContent = text
  notice.hidden = false
  setTimeout(() => (notice.hidden = true), 6000)
}

const runAndNotify = (work: () => Promise<unknown>) =>
  void work().catch((thrown: unknown) => notify(thrown instanceof Error ? thrown.message : String(thrown)))

export function button(text: string, work: () => Promise<unknown>, look = ''): HTMLButtonElement {
  const made = h('button', { type: 'button', ...(look && { class: look }) }, text)
  made.addEventListener('click', () => runAndNotify(work))
  return made
}

/** A form with these fields. It is reset after `work` has succeeded. */
export function form(
  fields: readonly HTMLElement[],
  submit: string,
  work: (values: Readonly<Record<string, string>>) => Promise<unknown>,
): HTMLFormElement {
  const made = h('form', {}, ...fields, h('div', { class: 'row' }, h('button', { class: 'main' }, submit)))
  made.addEventListener('submit', (event) => {
    event.preventDefault()
    const values = Object.fromEntries([...new FormData(made)].map(([key, value]) => [key, (value as string).trim()]))
    runAndNotify(async () => {
      await work(values)
      made.reset()
    })
  })
  return made
}

let ids = 0

export function field(
  name: string,
  label: string,
  attributes: Readonly<Record<string, string | boolean>> = {},
): HTMLElement {
  const id = `field-${++ids}`
  return h('div', {}, h('label', { for: id }, label), h('input', { id, name, autocomplete: 'off', ...attributes }))
}

/**
 * Shows these items as the children of a list. An existing element stays, and is redrawn only if its item has changed,
 * so that no input loses the focus.
 */
export function fill<Item>(
  list: HTMLElement,
  items: readonly Item[],
  keyOf: (item: Item) => string,
  draw: (item: Item) => readonly Node[],
): void {
  const existing = new Map(
    [...list.children].map((child) => [(child as HTMLElement).dataset.key, child as HTMLElement]),
  )
  const wanted = items.map((item) => {
    const [key, looks] = [keyOf(item), JSON.stringify(item)]
    const element = existing.get(key) ?? h('li', { 'data-key': key })
    if (element.dataset.looks !== looks) element.replaceChildren(...draw(item))
    element.dataset.looks = looks
    return element
  })
  if (wanted.some((element, at) => list.children[at] !== element) || list.children.length !== wanted.length)
    list.replaceChildren(...wanted)
}
