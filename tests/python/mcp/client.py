"""A client on the published SDK: MODE, then a URL, or a command and its arguments. Prints what it was told, as JSON."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main() -> None:
    mode, target, *arguments = sys.argv[1:]
    where = StdioServerParameters(command=target, args=arguments) if arguments else target
    async with Client(where, mode=mode) as client:
        listed = await client.list_tools()
        wanted = {"name": "py_add", "arguments": {"a": 2, "b": 3}}
        found = await client.call_tool("find_tools", {"names": ["py_add"]})
        through = await client.call_tool("call_tool", wanted)
        direct = await client.call_tool("py_add", {"a": 20, "b": 30})
        failed = await client.call_tool("py_fail", {})
        print(
            json.dumps(
                {
                    "version": client.protocol_version,
                    "tools": [tool.name for tool in listed.tools],
                    "found": found.content[0].text,
                    "through": through.content[0].text,
                    "direct": direct.content[0].text,
                    "failed": [failed.is_error, failed.content[0].text],
                }
            )
        )


asyncio.run(main())
