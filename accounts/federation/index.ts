export type { ClientSignInResult, SignInResult } from "./federated-sign-in.ts";
export { type Federation, makeFederation } from "./federation.ts";
export type { RequestedSignIn } from "./oauth-state-store.ts";
export {
  type CallbackRequest,
  CLIENT_CALLBACK_PATH,
  PROVIDERS_PATH,
  type ProviderKind,
  type ProviderSettings,
  type SignInParameters,
} from "./provider.ts";
export { type ListedProvider, makeProviders, type NewProvider, type Providers } from "./providers.ts";
export { readRedirectTarget } from "./read-redirect-target.ts";
