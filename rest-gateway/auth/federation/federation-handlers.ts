import { PROVIDERS_PATH } from "../../../engine/auth/federation/service-urls.ts";
import { toApiError } from "../../../engine/errors.ts";
import { notFound } from "../../../engine/wrong-address.ts";
import { dispatch, type Routes } from "../../gateway.ts";
import type { Handler } from "../../http.ts";
import type { RenderPage } from "../../pages/page.ts";
import type { AuthDependencies } from "../auth-dependencies.ts";
import { withoutCaching } from "../without-caching.ts";
import { pathSegments } from "./callback-request.ts";
import { acceptsHtml, codePage, errorPage } from "./pages.ts";
import { commonRoutes, signInRoutes } from "./sign-in-routes.ts";
import { signOutRoutes } from "./sign-out-routes.ts";

export type FederationDependencies = AuthDependencies & {
  readonly render: RenderPage;
  /** The public URL of the service. */
  readonly siteUrl: () => string;
};

/** Sign-in through identity providers: `/auth/providers`, `/auth/providers/code`, `/auth/providers/{name}/callback` … */
export function federationHandlers(services: FederationDependencies): Readonly<Record<string, Handler>> {
  const common = methodsOf(withoutCaching(commonRoutes(services)));
  const ofProvider = methodsOf(withoutCaching({ ...signInRoutes(services), ...signOutRoutes(services) }));
  const handle: Handler = (request) => {
    const [first = "", second, ...further] = pathSegments(request);
    const methods = second === undefined ? common.get(first) : ofProvider.get(second);
    if (!methods || further.length > 0 || request.path.endsWith("/")) throw notFound();
    return dispatch(methods, request);
  };
  return { [PROVIDERS_PATH]: withErrorPages(handle, services.render) };
}

function methodsOf(routes: Routes): ReadonlyMap<string, ReadonlyMap<string, Handler>> {
  return new Map(Object.entries(routes).map(([path, methods]) => [path, new Map(Object.entries(methods))]));
}

/** Renders expected errors as pages for browsers. Unexpected errors are rethrown, to be logged. */
function withErrorPages(handle: Handler, render: RenderPage): Handler {
  return async (request) => {
    try {
      return await handle(request);
    } catch (thrown) {
      const error = toApiError(thrown);
      if (!acceptsHtml(request) || error.status === 500) throw error;
      if (error.code !== "INVALID_CODE") return render(errorPage(error));
      return render(codePage({ values: new URLSearchParams(), error }));
    }
  };
}
