import type { Schema } from "../openapi/table-document/type-schema.ts";
import { CSRF, type DescribedPaths, OPTIONAL_MOMENT, OPTIONAL_TEXT, TEXT } from "./described.ts";
import { object } from "./object-schema.ts";

const ID: Schema = { type: "integer", minimum: 1 };
const OWNER: Schema = { type: ["integer", "null"], description: "The user whose rights it has; null for none" };
const ROLE: Schema = { ...TEXT, examples: ["authenticated"] };
const KEY_ID = { name: "id", in: "path", required: true, description: "Of the key", schema: ID };

const LISTED = object({
  id: ID,
  begins: { ...TEXT, description: "What the key itself begins with" },
  name: TEXT,
  role: TEXT,
  owner: OWNER,
  createdAt: { type: "string", format: "date-time" },
  expires: OPTIONAL_MOMENT,
  revokedAt: OPTIONAL_MOMENT,
  lastUsedAt: OPTIONAL_MOMENT,
});

/** The keys of programs, which administrators alone give out. */
export const KEY_PATHS: DescribedPaths = {
  "/auth/keys": {
    get: {
      id: "apiKeys.list",
      tag: "API keys",
      summary: "All keys, without what is secret of them",
      answers: { 200: ["The keys", object({ keys: { type: "array", items: LISTED } })] },
      refusals: [403],
    },
    post: {
      id: "apiKeys.create",
      tag: "API keys",
      summary: "Make a key for a program",
      parameters: [CSRF],
      body: object({ role: ROLE }, { name: OPTIONAL_TEXT, owner: OWNER, expires: OPTIONAL_MOMENT }),
      answers: { 201: ["The key, which is shown this once", object({ id: ID, key: TEXT, message: TEXT })] },
      refusals: [403, 404, 413, 415],
    },
  },
  "/auth/keys/{id}": {
    delete: {
      id: "apiKeys.revoke",
      tag: "API keys",
      summary: "End a key",
      parameters: [KEY_ID, CSRF],
      answers: { 204: ["It has ended", null] },
      refusals: [403, 404],
    },
  },
};
