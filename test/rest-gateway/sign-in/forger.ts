import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";

type Answer = { readonly status?: number; readonly type?: string; readonly body: string };
type Claims = Readonly<Record<string, unknown>>;

/** A provider that sends the answers of a test, signed by its own key or not. */
export type Forger = {
  readonly issuer: string;
  readonly publicKeyPem: string;
  /** Replaces the right answer at an address. */
  say(
    path: string,
    answer: (request: { form: URLSearchParams; request: IncomingMessage }) => Answer | Promise<Answer>,
  ): void;
  /** Members that its discovery document has in addition, or with other values. */
  metadata: Record<string, unknown>;
  idToken(claims: Claims, header?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Returns all requests that it has received. */
  asked(): string[];
  forget(): void;
  close(): Promise<void>;
};

export async function openForger(clientId: string): Promise<Forger> {
  const { publicKey, privateKey } = await generateKeyPair("RS256", { extractable: true });
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const answers = new Map<string, Parameters<Forger["say"]>[1]>();
  let sent: string[] = [];

  const forger: Forger = {
    issuer,
    publicKeyPem: "",
    metadata: {},
    say: (path, answer) => void answers.set(path, answer),
    forget() {
      answers.clear();
      sent = [];
      forger.metadata = {};
    },
    asked: () => sent,
    idToken(claims, header = {}) {
      const now = Math.floor(Date.now() / 1000);
      const all = { iss: issuer, aud: clientId, sub: "forged", iat: now, exp: now + 300, ...claims };
      const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
      return new SignJWT(given as JWTPayload)
        .setProtectedHeader({ alg: "RS256", kid: "one", ...header })
        .sign(privateKey);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };

  const usual: Record<string, () => object | Promise<object>> = {
    "/.well-known/openid-configuration": () => ({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      response_types_supported: ["code"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["RS256"],
      ...forger.metadata,
    }),
    "/keys": async () => ({ keys: [{ ...(await exportJWK(publicKey)), kid: "one", alg: "RS256", use: "sig" }] }),
  };

  server.on("request", async (request, response) => {
    const { pathname } = new URL(request.url!, issuer);
    sent.push(pathname);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    const {
      status = 200,
      type = "application/json",
      body,
    } = (await answers.get(pathname)?.({ form, request })) ?? {
      body: JSON.stringify((await usual[pathname]?.()) ?? {}),
    };
    response.writeHead(status, { "Content-Type": type }).end(body);
  });

  const { exportSPKI } = await import("jose");
  return Object.assign(forger, { publicKeyPem: await exportSPKI(publicKey) });
}

export function json(body: object, status = 200): Answer {
  return { status, body: JSON.stringify(body) };
}
