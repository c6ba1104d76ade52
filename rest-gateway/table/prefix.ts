/** Below which address the table interface answers. */
export const PREFIX = "/rest/v1";
