import { componentRef, type JsonSchema, objectOf } from "../json-schema.ts";
import { type PathItem, type ResourceErrorStatus, resourceErrorRefs } from "./responses.ts";

const TEXT: JsonSchema = { type: "string" };
const OPTIONAL_TEXT: JsonSchema = { type: ["string", "null"] };
const OPTIONAL_MOMENT: JsonSchema = { type: ["string", "null"], format: "date-time" };
const MESSAGE = objectOf({ message: TEXT });
const SIGNED_IN = objectOf({ username: TEXT, role: TEXT, message: TEXT });
const PAIR = componentRef("schemas", "tokenPair");

const CSRF = {
  name: "X-CSRF-Token",
  in: "header",
  description: "From GET /csrf-token, for sessions",
  schema: TEXT,
};

const API_KEY_ID: JsonSchema = { type: "integer", minimum: 1 };
const API_KEY_OWNER: JsonSchema = {
  type: ["integer", "null"],
  description: "The user whose rights it has; null for none",
};
const API_KEY_ROLE: JsonSchema = { ...TEXT, examples: ["authenticated"] };
const API_KEY_ID_PARAMETER = { name: "id", in: "path", required: true, description: "Of the key", schema: API_KEY_ID };

const API_KEY = objectOf({
  id: API_KEY_ID,
  begins: { ...TEXT, description: "What the key itself begins with" },
  name: TEXT,
  role: TEXT,
  owner: API_KEY_OWNER,
  createdAt: { type: "string", format: "date-time" },
  expires: OPTIONAL_MOMENT,
  revokedAt: OPTIONAL_MOMENT,
  lastUsedAt: OPTIONAL_MOMENT,
});

/** The keys of programs, which administrators alone give out. */
const KEY_PATHS: ServicePaths = {
  "/auth/keys": {
    get: {
      id: "apiKeys.list",
      tag: "API keys",
      summary: "All keys, without what is secret of them",
      responses: { 200: ["The keys", objectOf({ keys: { type: "array", items: API_KEY } })] },
      errors: [403],
    },
    post: {
      id: "apiKeys.create",
      tag: "API keys",
      summary: "Make a key for a program",
      parameters: [CSRF],
      body: objectOf({ role: API_KEY_ROLE }, { name: OPTIONAL_TEXT, owner: API_KEY_OWNER, expires: OPTIONAL_MOMENT }),
      responses: { 201: ["The key, which is shown this once", objectOf({ id: API_KEY_ID, key: TEXT, message: TEXT })] },
      errors: [403, 404, 413, 415],
    },
  },
  "/auth/keys/{id}": {
    delete: {
      id: "apiKeys.revoke",
      tag: "API keys",
      summary: "End a key",
      parameters: [API_KEY_ID_PARAMETER, CSRF],
      responses: { 204: ["It has ended", null] },
      errors: [403, 404],
    },
  },
};

const PROVIDER_NAME = { name: "name", in: "path", required: true, description: "Of the provider", schema: TEXT };
const REDIRECT_TARGET: JsonSchema = {
  ...OPTIONAL_TEXT,
  description: "Where the browser ends: here, or one of SIGN_IN_REDIRECTS",
};

const PROVIDER = objectOf({
  name: TEXT,
  title: TEXT,
  kind: { type: "string", enum: ["oidc", "oauth2", "saml"] },
  address: { ...TEXT, description: "Where a browser is sent to sign in" },
});

/** Signing in through others, as far as programs ask for it: browsers are led through the rest. */
const PROVIDER_PATHS: ServicePaths = {
  "/auth/providers": {
    get: {
      id: "identityProviders.list",
      tag: "Providers",
      summary: "Through whom one can sign in",
      responses: { 200: ["The providers", objectOf({ providers: { type: "array", items: PROVIDER } })] },
    },
  },
  "/auth/providers/exchange": {
    post: {
      id: "identityProviders.exchange",
      tag: "Providers",
      summary: "Exchange the code that the browser came back with for tokens",
      body: objectOf({ code: TEXT }, { codeVerifier: OPTIONAL_TEXT }),
      responses: { 200: ["A pair of tokens", PAIR] },
      errors: [403, 413, 415],
    },
  },
  "/auth/providers/code": {
    post: {
      id: "identityProviders.code",
      tag: "Providers",
      summary: "Send the code of the authenticator app that is owed after the provider's sign-in",
      body: objectOf({ code: TEXT }),
      responses: {
        200: ["Signed in for a session, whose cookie comes with the answer", SIGNED_IN],
        303: ["Done, and on to where the sign-in is to end", null],
      },
      errors: [403, 413, 415],
    },
  },
  "/auth/providers/{name}/link": {
    post: {
      id: "identityProviders.link",
      tag: "Providers",
      summary: "Sign in by this provider, too, from now on",
      parameters: [PROVIDER_NAME, CSRF],
      body: objectOf({}, { redirectTo: REDIRECT_TARGET }),
      responses: { 200: ["Where a browser is sent to agree", objectOf({ address: TEXT })] },
      errors: [403, 404, 413, 415, 502],
    },
  },
  "/auth/providers/{name}/sign-out": {
    post: {
      id: "identityProviders.signOut",
      tag: "Providers",
      summary: "End the session, and learn where a browser ends the provider's",
      parameters: [PROVIDER_NAME, CSRF],
      body: objectOf({}, { redirectTo: REDIRECT_TARGET }),
      responses: { 200: ["Signed out", objectOf({ message: TEXT, address: OPTIONAL_TEXT })] },
      errors: [403, 404, 413, 415],
    },
  },
};

const UUID_SCHEMA: JsonSchema = { type: "string", format: "uuid" };
const COUNT_SCHEMA: JsonSchema = { type: "integer", minimum: 0 };
const CODES: JsonSchema = { type: "array", items: TEXT };

/** What is told besides rows. */
export const SERVICE_SCHEMAS: readonly (readonly [string, JsonSchema])[] = [
  [
    "tokenPair",
    objectOf({
      accessToken: TEXT,
      refreshToken: TEXT,
      expiresIn: { ...COUNT_SCHEMA, description: "Seconds" },
      tokenType: { const: "Bearer" },
    }),
  ],
  [
    "accepted",
    objectOf({ taskId: UUID_SCHEMA, status: TEXT, estimate: { ...COUNT_SCHEMA, description: "Seconds, as a guess" } }),
  ],
  [
    "task",
    objectOf(
      {
        taskId: UUID_SCHEMA,
        status: { type: "string", enum: ["queued", "running", "done", "failed"] },
        progress: { type: ["integer", "null"], minimum: 0, maximum: 100, description: "Percent, where it is known" },
        createdAt: { type: "string", format: "date-time" },
        startedAt: { type: ["string", "null"], format: "date-time" },
        finishedAt: { type: ["string", "null"], format: "date-time" },
      },
      {
        result: { description: "What would have been answered; there when it is done" },
        error: { type: "object", description: "What would have been refused; there when it failed" },
      },
    ),
  ],
];

export const ACCEPTED: readonly [string, object] = [
  "accepted",
  {
    description: "Left for later: the Location tells what becomes of it",
    headers: {
      Location: { description: "The task", schema: TEXT },
      "Preference-Applied": { description: "respond-async", schema: TEXT },
    },
    content: { "application/json": { schema: componentRef("schemas", "accepted") } },
  },
];

const CREDENTIALS = objectOf({ username: TEXT, password: TEXT }, { code: OPTIONAL_TEXT });
const CODE = { name: "code", in: "query", required: true, description: "Of the authenticator app", schema: TEXT };

const TASK_ID = { name: "taskId", in: "path", required: true, description: "Of the answer 202", schema: UUID_SCHEMA };

/** What is not served is left out of the document. */
const SERVICE_PATHS: ServicePaths = {
  "/auth/register": {
    post: {
      id: "auth.register",
      tag: "Sign in",
      summary: "Make an account",
      body: objectOf(
        { name: TEXT, email: { type: "string", format: "email" }, password: TEXT },
        { username: OPTIONAL_TEXT, age: { type: ["integer", "null"] } },
      ),
      responses: {
        201: ["The user, and a pair of tokens", { allOf: [PAIR, objectOf({ user: { type: "object" } })] }],
      },
      errors: [409, 413, 415, 422],
    },
  },
  "/auth/login": {
    post: {
      id: "auth.login",
      tag: "Sign in",
      summary: "Sign in for tokens",
      body: CREDENTIALS,
      responses: { 200: ["A pair of tokens", PAIR] },
      errors: [403, 413, 415],
    },
  },
  "/auth/refresh": {
    post: {
      id: "auth.refresh",
      tag: "Sign in",
      summary: "Exchange a refresh token for a new pair",
      body: objectOf({ refreshToken: TEXT }),
      responses: { 200: ["The next pair of tokens", PAIR] },
      errors: [413, 415],
    },
  },
  "/auth/logout": {
    post: {
      id: "auth.logout",
      tag: "Sign in",
      summary: "End all refresh tokens",
      responses: { 200: ["Signed out", MESSAGE] },
      errors: [403, 404],
    },
  },
  "/auth/password": {
    post: {
      id: "auth.password",
      tag: "Sign in",
      summary: "Change the password",
      body: objectOf({ currentPassword: TEXT, newPassword: TEXT }),
      responses: { 200: ["A new pair of tokens; to a session, that it is done", { anyOf: [PAIR, MESSAGE] }] },
      errors: [403, 404, 413, 415],
    },
  },
  "/auth/forgot-password": {
    post: {
      id: "auth.forgotPassword",
      tag: "Sign in",
      summary: "Have a mail sent that lets one set a new password",
      body: objectOf({ email: TEXT }),
      responses: { 202: ["It is sent if there is such an account", MESSAGE] },
      errors: [413, 415, 501],
    },
  },
  "/auth/reset-password": {
    post: {
      id: "auth.resetPassword",
      tag: "Sign in",
      summary: "Set a new password with the token of a mail",
      body: objectOf({ token: TEXT, password: TEXT }),
      responses: { 200: ["It is set", MESSAGE] },
      errors: [403, 413, 415],
    },
  },
  "/auth/verify-email": {
    post: {
      id: "auth.verifyEmail",
      tag: "Sign in",
      summary: "Show that the address is one's own, with the token of a mail",
      body: objectOf({ token: TEXT }),
      responses: { 200: ["It is verified", MESSAGE] },
      errors: [403, 413, 415],
    },
  },
  "/auth/resend-verification": {
    post: {
      id: "auth.resendVerification",
      tag: "Sign in",
      summary: "Have the mail sent again",
      responses: { 202: ["It is on its way", MESSAGE] },
      errors: [403, 404, 501],
    },
  },
  ...PROVIDER_PATHS,
  ...KEY_PATHS,
  "/api/auth/login": {
    post: {
      id: "session.login",
      tag: "Sessions",
      summary: "Sign in for a session, whose cookie comes with the answer",
      body: CREDENTIALS,
      responses: { 200: ["Signed in", SIGNED_IN] },
      errors: [403, 413, 415],
    },
  },
  "/api/auth/logout": {
    post: {
      id: "session.logout",
      tag: "Sessions",
      summary: "End the session",
      parameters: [CSRF],
      responses: { 200: ["Signed out", MESSAGE] },
      errors: [403],
    },
  },
  "/api/auth/me": {
    get: {
      id: "session.me",
      tag: "Sessions",
      summary: "Whose session it is",
      responses: {
        200: [
          "The session",
          objectOf({
            userId: { type: "integer" },
            username: TEXT,
            role: TEXT,
            loginTime: { type: "string", format: "date-time" },
          }),
        ],
      },
    },
  },
  "/csrf-token": {
    get: {
      id: "session.csrfToken",
      tag: "Sessions",
      summary: "The token that changes by the session's cookie need",
      responses: { 200: ["The token", objectOf({ csrfToken: TEXT })] },
    },
  },
  "/api/mfa/enable": {
    post: {
      id: "factor.enable",
      tag: "Second factor",
      summary: "Enrol an authenticator app",
      responses: { 200: ["To be scanned, and verified", objectOf({ secret: TEXT, qrCode: TEXT, message: TEXT })] },
      errors: [403, 404, 409],
    },
  },
  "/api/mfa/verify": {
    post: {
      id: "factor.verify",
      tag: "Second factor",
      summary: "Confirm it with a first code",
      parameters: [CODE],
      responses: { 200: ["From now on needed", objectOf({ message: TEXT, backupCodes: CODES, warning: TEXT })] },
      errors: [403, 404, 409],
    },
  },
  "/api/mfa/disable": {
    post: {
      id: "factor.disable",
      tag: "Second factor",
      summary: "Do without it again",
      parameters: [CODE],
      responses: { 200: ["No longer needed", MESSAGE] },
      errors: [403, 404, 409],
    },
  },
  "/api/mfa/backup-codes": {
    post: {
      id: "factor.backupCodes",
      tag: "Second factor",
      summary: "New backup codes",
      parameters: [CODE],
      responses: { 200: ["The codes", objectOf({ message: TEXT, backupCodes: CODES, warning: TEXT })] },
      errors: [403, 404, 409],
    },
  },
  "/health": {
    get: {
      id: "service.health",
      tag: "Service",
      summary: "Whether all is well",
      responses: { 200: ["It is, or nearly so", objectOf({ status: TEXT }, { reason: TEXT })] },
    },
  },
  "/.well-known/jwks.json": {
    get: {
      id: "service.keys",
      tag: "Service",
      summary: "By what others verify our tokens",
      responses: { 200: ["The keys", objectOf({ keys: { type: "array", items: { type: "object" } } })] },
    },
  },
};

const TASK_PATH: ServicePaths[string] = {
  get: {
    id: "tasks.get",
    tag: "Tasks",
    summary: "What has become of what was left for later",
    parameters: [TASK_ID],
    responses: { 200: ["The task", componentRef("schemas", "task")] },
    errors: [404],
  },
  delete: {
    id: "tasks.withdraw",
    tag: "Tasks",
    summary: "Take it back if it has not begun, or forget it",
    parameters: [TASK_ID],
    responses: { 204: ["Gone", null] },
    errors: [403, 404, 409],
  },
};

/** Those of them that are served. */
export function* servicePaths(isServed: (address: string) => boolean): Generator<[string, PathItem]> {
  for (const [address, methods] of Object.entries(SERVICE_PATHS)) {
    if (!isServed(address)) continue;
    yield [address, toPathItem(methods)];
  }
}

/** What was left for later is told in every version. */
export function taskPath(version: number): [string, PathItem] {
  return [`/api/v${version}/tasks/{taskId}`, toPathItem(TASK_PATH)];
}

function toPathItem(methods: ServicePaths[string]): PathItem {
  return Object.fromEntries(Object.entries(methods).map(([method, said]) => [method, toOperation(said)]));
}

function toOperation({
  id,
  tag,
  summary,
  parameters,
  body,
  responses: answers,
  errors: refusals = [],
}: ServiceOperation) {
  const described = Object.entries(answers).map(([status, [description, schema]]) => {
    return [status, { description, ...(schema && { content: { "application/json": { schema } } }) }];
  });
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(parameters && { parameters }),
    ...(body && { requestBody: { required: isRequired(body), content: { "application/json": { schema: body } } } }),
    responses: { ...Object.fromEntries(described), ...resourceErrorRefs(...refusals) },
  };
}

/** A body of which nothing has to be said may be left out. */
function isRequired({ required }: JsonSchema): boolean {
  return Array.isArray(required) && required.length > 0;
}

/** One operation that is not about rows. */
type ServiceOperation = {
  readonly id: string;
  readonly tag: "Sign in" | "Providers" | "Sessions" | "Second factor" | "API keys" | "Service" | "Tasks";
  readonly summary: string;
  readonly parameters?: readonly object[];
  readonly body?: JsonSchema;
  readonly responses: Readonly<Record<number, readonly [description: string, schema: JsonSchema | null]>>;
  readonly errors?: readonly ResourceErrorStatus[];
};

/** By address and method. */
type ServicePaths = Readonly<Record<string, Readonly<Record<string, ServiceOperation>>>>;
