import { once } from "node:events";
import type { Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import express from "express";
import type { Browser, PageView } from "./browser.ts";
import { PROVIDER_CERTIFICATE, PROVIDER_KEY, SERVICE_CERTIFICATE } from "./saml-keys.ts";

type Assertion = Readonly<Record<string, unknown>>;

export type SamlProvider = {
  readonly issuer: string;
  readonly origin: string;
  /** The user who is signed in there. */
  user: User;
  /** Signs in through the provider's page, which sends the form by itself. */
  signIn(browser: Browser, start: string | URL): Promise<PageView>;
  /** A response as it makes them, as XML. */
  respond(options: Assertion): Promise<string>;
  close(): Promise<void>;
};

export type User = { readonly id: string; readonly [attribute: string]: string };

const EMAIL_FORMAT = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress";
export const ISSUER = "urn:example:provider";
const samlp = createRequire(import.meta.url)("samlp");
/** Maps a user to the claims and the name in its assertions. */
const profileMapper = ({ id, ...attributes }: User) => ({
  getClaims: () => attributes,
  getNameIdentifier: () => ({ nameIdentifier: id, nameIdentifierFormat: EMAIL_FORMAT }),
});
const KEYS = { key: PROVIDER_KEY, cert: PROVIDER_CERTIFICATE, profileMapper };

/** A real one on loopback: Auth0's, which signs assertions alone unless it is told otherwise. */
export async function openSamlProvider({
  callback,
  signedOut,
}: {
  callback: string;
  signedOut: string;
}): Promise<SamlProvider> {
  const app = express();
  const participants: Readonly<Record<string, unknown>>[] = [];
  const provider: SamlProvider = {
    issuer: ISSUER,
    origin: "",
    user: { id: "ada@example.org", displayName: "Ada" },
    async signIn(browser, start) {
      return submit(browser, await browser.go(start));
    },
    respond(options) {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const usual = {
        ...KEYS,
        issuer: ISSUER,
        recipient: callback,
        destination: callback,
        lifetimeInSeconds: 60,
        signatureAlgorithm: "rsa-sha256",
        digestAlgorithm: "sha256",
      };
      samlp.getSamlResponse({ ...usual, ...options }, options.user ?? provider.user, (error: unknown, xml: string) =>
        error ? reject(error) : resolve(String(xml)),
      );
      return promise;
    },
    close: async () => {},
  };

  app.get(
    "/sso",
    samlp.auth({
      ...KEYS,
      issuer: ISSUER,
      recipient: callback,
      destination: callback,
      sessionIndex: "session-1",
      getUserFromRequest: () => provider.user,
      getPostURL: (_audience: string, _dom: unknown, _request: unknown, done: (error: null, url: string) => void) =>
        done(null, callback),
    }),
  );
  const states = new Map<string, unknown>();
  const sessionParticipants = {
    hasElements: () => participants.length > 0,
    get: (_issuer: string, _index: string, _name: string, done: (error: null, found: unknown) => void) =>
      done(null, participants[0]),
    getFirst: (done: (error: null, found: unknown) => void) => done(null, participants[0]),
    remove: (_issuer: string, _index: string, _name: string, done: (error: null, found: unknown) => void) =>
      done(null, participants.shift()),
  };
  const store = {
    save(_request: unknown, state: unknown, done: (error: null, id: string) => void) {
      states.set("one", state);
      done(null, "one");
    },
    load(_request: unknown, id: string, _options: unknown, done: (error: null, state: unknown) => void) {
      done(null, states.get(id));
    },
    update(_request: unknown, id: string, state: unknown, done: (error: null, id: string) => void) {
      states.set(id, state);
      done(null, id);
    },
  };
  const participant = {
    serviceProviderId: callback.replace(/callback$/, "metadata"),
    nameId: "ada@example.org",
    sessionIndex: "session-1",
    serviceProviderLogoutURL: signedOut,
    cert: SERVICE_CERTIFICATE,
    binding: "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST",
  };
  app.get("/begin-logout", (_request, response) => {
    participants.splice(0, 9, participant);
    response.end();
  });
  const logoutOptions = () => ({
    ...KEYS,
    issuer: ISSUER,
    deflate: true,
    protocolBinding: "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST",
    sessionParticipants,
    store,
    signatureAlgorithm: "rsa-sha256",
    digestAlgorithm: "sha256",
  });
  for (const method of ["get", "post"] as const) {
    app[method](
      "/slo",
      express.urlencoded({ extended: false }),
      // It was written for an Express that always has a body.
      (request, _response, next) => {
        request.body ??= {};
        next();
      },
      // It keeps its findings about one request among its options.
      (request, response, next) => samlp.logout(logoutOptions())(request, response, next),
    );
  }
  const server: Server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return Object.assign(provider, {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  });
}

/** Submits the form like the script of the page in a browser. */
export function submit(browser: Browser, { text, url }: PageView): Promise<PageView> {
  const action = /action="([^"]+)"/.exec(text)![1]!;
  const fields = [...text.matchAll(/name="([^"]+)"\s+value="([^"]*)"/g)].map(([, name, value]) => [
    name!,
    plain(value!),
  ]);
  return browser.go(new URL(plain(action), url), { form: Object.fromEntries(fields) });
}

function plain(text: string): string {
  return text.replace(/&#x([0-9a-f]+);|&#(\d+);/gi, (_whole, hex, decimal) =>
    String.fromCodePoint(hex ? Number.parseInt(hex, 16) : Number(decimal)),
  );
}
