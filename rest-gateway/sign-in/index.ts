export { authPathPrefixes, authRoutes } from "./auth-routes.ts";
export { AUTH_V1_PREFIX, authV1Handler } from "./auth-v1/auth-v1-routes.ts";
export { toAuthErrorResponse } from "./auth-v1/errors.ts";
export { keySetRoutes } from "./key-routes.ts";
export { makeOAuthStore } from "./oauth/oauth-store.ts";
export { SIGN_IN_PATH } from "./pages/sign-in-pages.ts";
export {
  type BodyField,
  INTEGER,
  OPTIONAL_BOOLEAN,
  OPTIONAL_TEXT,
  OPTIONAL_WHOLE_NUMBER,
  readFields,
  readJsonObject,
  TEXT,
} from "./request/read-body.ts";
