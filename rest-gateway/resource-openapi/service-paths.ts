import { referTo } from "../openapi/table-document/component-key.ts";
import type { Schema } from "../openapi/table-document/type-schema.ts";
import {
  CSRF,
  type Described,
  type DescribedPaths,
  MESSAGE,
  OPTIONAL_TEXT,
  PAIR,
  SIGNED_IN,
  TEXT,
} from "./described.ts";
import { refuses } from "./error-responses.ts";
import { KEY_PATHS } from "./key-paths.ts";
import { object } from "./object-schema.ts";
import type { PathItem } from "./operation.ts";
import { PROVIDER_PATHS } from "./provider-paths.ts";

const UUID: Schema = { type: "string", format: "uuid" };
const COUNT: Schema = { type: "integer", minimum: 0 };
const CODES: Schema = { type: "array", items: TEXT };

/** What is told besides rows. */
export const SERVICE_SCHEMAS: readonly (readonly [string, Schema])[] = [
  [
    "tokenPair",
    object({
      accessToken: TEXT,
      refreshToken: TEXT,
      expiresIn: { ...COUNT, description: "Seconds" },
      tokenType: { const: "Bearer" },
    }),
  ],
  ["accepted", object({ taskId: UUID, status: TEXT, estimate: { ...COUNT, description: "Seconds, as a guess" } })],
  [
    "task",
    object(
      {
        taskId: UUID,
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
    content: { "application/json": { schema: referTo("schemas", "accepted") } },
  },
];

const CREDENTIALS = object({ username: TEXT, password: TEXT }, { code: OPTIONAL_TEXT });
const CODE = { name: "code", in: "query", required: true, description: "Of the authenticator app", schema: TEXT };

const TASK_ID = { name: "taskId", in: "path", required: true, description: "Of the answer 202", schema: UUID };

/** What is not served is left out of the document. */
const SERVED: DescribedPaths = {
  "/auth/register": {
    post: {
      id: "auth.register",
      tag: "Sign in",
      summary: "Make an account",
      body: object(
        { name: TEXT, email: { type: "string", format: "email" }, password: TEXT },
        { username: OPTIONAL_TEXT, age: { type: ["integer", "null"] } },
      ),
      answers: {
        201: ["The user, and a pair of tokens", { allOf: [PAIR, object({ user: { type: "object" } })] }],
      },
      refusals: [409, 413, 415, 422],
    },
  },
  "/auth/login": {
    post: {
      id: "auth.login",
      tag: "Sign in",
      summary: "Sign in for tokens",
      body: CREDENTIALS,
      answers: { 200: ["A pair of tokens", PAIR] },
      refusals: [403, 413, 415],
    },
  },
  "/auth/refresh": {
    post: {
      id: "auth.refresh",
      tag: "Sign in",
      summary: "Exchange a refresh token for a new pair",
      body: object({ refreshToken: TEXT }),
      answers: { 200: ["The next pair of tokens", PAIR] },
      refusals: [413, 415],
    },
  },
  "/auth/logout": {
    post: {
      id: "auth.logout",
      tag: "Sign in",
      summary: "End all refresh tokens",
      answers: { 200: ["Signed out", MESSAGE] },
      refusals: [403, 404],
    },
  },
  "/auth/password": {
    post: {
      id: "auth.password",
      tag: "Sign in",
      summary: "Change the password",
      body: object({ currentPassword: TEXT, newPassword: TEXT }),
      answers: { 200: ["A new pair of tokens; to a session, that it is done", { anyOf: [PAIR, MESSAGE] }] },
      refusals: [403, 404, 413, 415],
    },
  },
  "/auth/forgot-password": {
    post: {
      id: "auth.forgotPassword",
      tag: "Sign in",
      summary: "Have a mail sent that lets one set a new password",
      body: object({ email: TEXT }),
      answers: { 202: ["It is sent if there is such an account", MESSAGE] },
      refusals: [413, 415, 501],
    },
  },
  "/auth/reset-password": {
    post: {
      id: "auth.resetPassword",
      tag: "Sign in",
      summary: "Set a new password with the token of a mail",
      body: object({ token: TEXT, password: TEXT }),
      answers: { 200: ["It is set", MESSAGE] },
      refusals: [403, 413, 415],
    },
  },
  "/auth/verify-email": {
    post: {
      id: "auth.verifyEmail",
      tag: "Sign in",
      summary: "Show that the address is one's own, with the token of a mail",
      body: object({ token: TEXT }),
      answers: { 200: ["It is verified", MESSAGE] },
      refusals: [403, 413, 415],
    },
  },
  "/auth/resend-verification": {
    post: {
      id: "auth.resendVerification",
      tag: "Sign in",
      summary: "Have the mail sent again",
      answers: { 202: ["It is on its way", MESSAGE] },
      refusals: [403, 404, 501],
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
      answers: { 200: ["Signed in", SIGNED_IN] },
      refusals: [403, 413, 415],
    },
  },
  "/api/auth/logout": {
    post: {
      id: "session.logout",
      tag: "Sessions",
      summary: "End the session",
      parameters: [CSRF],
      answers: { 200: ["Signed out", MESSAGE] },
      refusals: [403],
    },
  },
  "/api/auth/me": {
    get: {
      id: "session.me",
      tag: "Sessions",
      summary: "Whose session it is",
      answers: {
        200: [
          "The session",
          object({
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
      answers: { 200: ["The token", object({ csrfToken: TEXT })] },
    },
  },
  "/api/mfa/enable": {
    post: {
      id: "factor.enable",
      tag: "Second factor",
      summary: "Enrol an authenticator app",
      answers: { 200: ["To be scanned, and verified", object({ secret: TEXT, qrCode: TEXT, message: TEXT })] },
      refusals: [403, 404, 409],
    },
  },
  "/api/mfa/verify": {
    post: {
      id: "factor.verify",
      tag: "Second factor",
      summary: "Confirm it with a first code",
      parameters: [CODE],
      answers: { 200: ["From now on needed", object({ message: TEXT, backupCodes: CODES, warning: TEXT })] },
      refusals: [403, 404, 409],
    },
  },
  "/api/mfa/disable": {
    post: {
      id: "factor.disable",
      tag: "Second factor",
      summary: "Do without it again",
      parameters: [CODE],
      answers: { 200: ["No longer needed", MESSAGE] },
      refusals: [403, 404, 409],
    },
  },
  "/api/mfa/backup-codes": {
    post: {
      id: "factor.backupCodes",
      tag: "Second factor",
      summary: "New backup codes",
      parameters: [CODE],
      answers: { 200: ["The codes", object({ message: TEXT, backupCodes: CODES, warning: TEXT })] },
      refusals: [403, 404, 409],
    },
  },
  "/health": {
    get: {
      id: "service.health",
      tag: "Service",
      summary: "Whether all is well",
      answers: { 200: ["It is, or nearly so", object({ status: TEXT }, { reason: TEXT })] },
    },
  },
  "/.well-known/jwks.json": {
    get: {
      id: "service.keys",
      tag: "Service",
      summary: "By what others verify our tokens",
      answers: { 200: ["The keys", object({ keys: { type: "array", items: { type: "object" } } })] },
    },
  },
};

const OF_TASK: DescribedPaths[string] = {
  get: {
    id: "tasks.get",
    tag: "Tasks",
    summary: "What has become of what was left for later",
    parameters: [TASK_ID],
    answers: { 200: ["The task", referTo("schemas", "task")] },
    refusals: [404],
  },
  delete: {
    id: "tasks.withdraw",
    tag: "Tasks",
    summary: "Take it back if it has not begun, or forget it",
    parameters: [TASK_ID],
    answers: { 204: ["Gone", null] },
    refusals: [403, 404, 409],
  },
};

/** Those of them that are served. */
export function* servicePaths(isServed: (address: string) => boolean): Generator<[string, PathItem]> {
  for (const [address, methods] of Object.entries(SERVED)) {
    if (!isServed(address)) continue;
    yield [address, toPathItem(methods)];
  }
}

/** What was left for later is told in every version. */
export function taskPath(version: number): [string, PathItem] {
  return [`/api/v${version}/tasks/{taskId}`, toPathItem(OF_TASK)];
}

function toPathItem(methods: DescribedPaths[string]): PathItem {
  return Object.fromEntries(Object.entries(methods).map(([method, said]) => [method, toOperation(said)]));
}

function toOperation({ id, tag, summary, parameters, body, answers, refusals = [] }: Described) {
  const told = Object.entries(answers).map(([status, [description, schema]]) => {
    return [status, { description, ...(schema && { content: { "application/json": { schema } } }) }];
  });
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(parameters && { parameters }),
    ...(body && { requestBody: { required: isRequired(body), content: { "application/json": { schema: body } } } }),
    responses: { ...Object.fromEntries(told), ...refuses(...refusals) },
  };
}

/** A body of which nothing has to be said may be left out. */
function isRequired({ required }: Schema): boolean {
  return Array.isArray(required) && required.length > 0;
}
