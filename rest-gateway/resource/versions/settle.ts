import type { GatewayRequest } from "../../http.ts";
import { publicPath } from "../../public-address.ts";
import { type Agreed, agreeOn } from "../parse/accept.ts";
import type { Address } from "../parse/address.ts";
import { chooseVersion } from "./choose.ts";
import { type Notice, noticeOf } from "./notice.ts";
import type { Version } from "./served.ts";

type Deployment = { readonly versions: readonly Version[]; readonly publicUrl: string | null };
type Settled = { readonly agreed: Agreed; readonly version: Version; readonly notice: Notice | null };

/** In which version and which type a request is answered; where that version goes away, the answer says so. */
export function settleVersion(
  request: GatewayRequest,
  address: Address,
  parameters: URLSearchParams,
  { versions, publicUrl }: Deployment,
): Settled {
  const agreed = agreeOn(request.headers.accept);
  const said = { headers: request.headers, parameters, address, publicUrl, mediaType: agreed.version };
  const version = chooseVersion(said, versions);
  const notice = noticeOf(version);
  if (notice) request.tell(notice.headers(address.canonical, publicPath(publicUrl)));
  return { agreed, version, notice };
}
