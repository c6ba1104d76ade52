import { newAddress } from "../../new-address.ts";

export type PageView = {
  readonly status: number;
  readonly url: URL;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
  readonly body: any;
};

type Sent = { readonly form?: Readonly<Record<string, string>>; readonly headers?: Readonly<Record<string, string>> };

/** The parts of a browser that a sign-in needs: cookies, redirects, forms. It does not visit addresses that it cannot reach. */
export type Browser = {
  go(url: string | URL, sent?: Sent): Promise<PageView>;
  /** Sends one request, and follows no redirect. */
  ask(url: string | URL, sent?: Sent): Promise<PageView>;
  cookies(url: string): ReadonlyMap<string, string>;
};

type Options = {
  /** Public addresses, and where they are in truth. */
  readonly hosts?: Readonly<Record<string, string>>;
  /** The address of the client; a new one if it does not matter. */
  readonly from?: string;
  /** The value of the header Accept. */
  readonly accept?: string;
};

const LONGEST_JOURNEY = 20;

export function openBrowser({ hosts = {}, accept = "application/json", from = newAddress() }: Options = {}): Browser {
  const jar = new Map<string, Map<string, string>>();

  const ask: Browser["ask"] = async (address, { form, headers } = {}) => {
    const url = new URL(address);
    const cookies = jar.get(url.origin) ?? new Map<string, string>();
    jar.set(url.origin, cookies);
    const response = await fetch((hosts[url.origin] ?? url.origin) + url.pathname + url.search, {
      method: form ? "POST" : "GET",
      redirect: "manual",
      headers: {
        Accept: accept,
        "X-Forwarded-For": from,
        Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; "),
        ...headers,
      },
      ...(form && { body: new URLSearchParams(form) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [name = "", value = ""] = cookie.split(";", 1)[0]!.split(/=(.*)/s);
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    return { status: response.status, url, headers: response.headers, text, body: isJson ? JSON.parse(text) : null };
  };

  const isReachable = (url: URL) => url.hostname === "127.0.0.1" || url.hostname === "localhost" || url.origin in hosts;

  return {
    ask,
    async go(address, sent) {
      let shown = await ask(address, sent);
      for (let step = 0; step < LONGEST_JOURNEY; step++) {
        const location = shown.headers.get("location");
        if (location === null) return shown;
        const url = new URL(location, shown.url);
        if (!isReachable(url)) return { ...shown, url };
        shown = await ask(url);
      }
      throw new Error(`The journey does not end: ${shown.url}`);
    },
    cookies: (url) => jar.get(new URL(url).origin) ?? new Map(),
  };
}
