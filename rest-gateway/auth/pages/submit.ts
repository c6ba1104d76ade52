import { type ApiError, toApiError } from "../../../engine/errors.ts";
import type { GatewayRequest, GatewayResponse, Handler } from "../../http.ts";
import type { Page } from "../../pages/page.ts";
import type { Refused } from "./form.ts";
import { readForm } from "./read-form.ts";
import type { PageServices } from "./services.ts";

/** One form: how it looks, empty or refused, and what becomes of what is sent. */
export type FormPage = {
  show(values: URLSearchParams, refused: Refused | null): Page | Promise<Page>;
  take(values: URLSearchParams, request: GatewayRequest): Promise<GatewayResponse>;
};

/** Asked for by its address, or sent; what is refused is shown again with the reason. */
export function formHandlers(
  { show, take }: FormPage,
  { render, crossSite }: Pick<PageServices, "render" | "crossSite">,
): Readonly<Record<"GET" | "POST", Handler>> {
  return {
    GET: async ({ rawQuery }) => render(await show(new URLSearchParams(rawQuery), null)),
    POST: async (request) => {
      const values = await readForm(request);
      try {
        crossSite.guard(request, null);
        return await take(values, request);
      } catch (thrown) {
        const error = forPeople(thrown);
        const page = await show(values, { values, error });
        return render({ ...page, status: error.status, headers: { ...page.headers, ...error.headers } });
      }
    },
  };
}

/** What nobody foresaw is nothing to show a form again for: the gateway tells and logs it. */
function forPeople(thrown: unknown): ApiError {
  const error = toApiError(thrown);
  if (error.status >= 500 && error !== thrown) throw error;
  return error;
}
