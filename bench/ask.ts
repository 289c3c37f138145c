/** As `fetch`, with the credentials of the address in a header: in an address `fetch` takes none. */
export function ask(url: string, path: string, init: RequestInit = {}): Promise<Response> {
  const { origin, username, password } = new URL(url)
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  return fetch(`${origin}/${path}`, {
    ...init,
    headers: { ...(init.headers as Record<string, string>), authorization },
  })
}
