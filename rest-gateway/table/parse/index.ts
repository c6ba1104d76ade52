export { NO_BODY } from "./body.ts";
export { parseQueryParameters } from "./query-parameters.ts";
export { parseQueryString } from "./query-string.ts";
export { parseTableRequest } from "./request.ts";
