"""Words that are each other's opposite, from which `falsify.py` makes false statements."""

OPPOSITES = """
more less|more fewer|most least|most fewest|many few|much little|greater smaller|greater less|larger smaller
largest smallest|bigger smaller|biggest smallest|big small|large small|higher lower|highest lowest|high low|above below
over under|longer shorter|longest shortest|long short|faster slower|fastest slowest|fast slow|quick slow
earlier later|early late|earliest latest|before after|first last|previous next|former latter|oldest newest
oldest youngest|older newer|older younger|old new|old young|eldest youngest|wider narrower|wide narrow|deep shallow
thick thin|heavy light|heavier lighter|strong weak|stronger weaker|hot cold|warm cool|hard easy|hard soft|rich poor
simple complex|cheap expensive|better worse|best worst|good bad|right wrong|right left|true false|correct incorrect
valid invalid|safe unsafe|safe dangerous|stable unstable|possible impossible|necessary unnecessary|able unable
known unknown|visible invisible|visible hidden|equal unequal|even odd|positive negative|plus minus|increase decrease
increase reduce|increases reduces|rise fall|raise lower|grow shrink|gain lose|gain loss|add subtract|add remove
multiply divide|accelerate decelerate|start stop|start end|begin end|begin finish|open close|open closed|on off
enable disable|enabled disabled|allow forbid|allow prevent|allowed forbidden|permit forbid|accept reject|accept refuse
include exclude|with without|inside outside|internal external|inner outer|in out|up down|upper lower|top bottom
front back|front rear|forward backward|forward inverse|forwards backwards|forward reverse|horizontal vertical
north south|east west|northern southern|eastern western|clockwise counterclockwise|client server|publish subscribe
publisher subscriber|sender receiver|send receive|source target|source destination|input output|read write|push pull
import export|encode decode|encoder decoder|compress decompress|lock unlock|connect disconnect|attach detach|load unload
load save|parent child|master slave|leader follower|teacher student|user admin|guest host|minimum maximum|min max
minimal maximal|always never|always sometimes|often rarely|often seldom|usually rarely|every no|every some|all none
all some|all no|any only|everybody nobody|everyone nobody|everything nothing|both neither|each only|must may
required optional|must can|should must|mandatory optional|manual automatic|manually automatically|static dynamic
local global|local remote|public private|synchronous asynchronous|serial parallel|absolute relative|active passive
online offline|success failure|succeed fail|succeeds fails|pass fail|win lose|won lost|victory defeat
winner loser|buy sell|lend borrow|give take|arrive depart|enter leave|appear disappear|remember forget|create destroy
create delete|create remove|build destroy|keep discard|keep drop|keep remove|alive dead|born died|birth death
male female
man woman|men women|boy girl|husband wife|brother sister|father mother|son daughter|king queen|prince princess|he she
his her|uncle aunt|actor actress|day night|morning evening|summer winter|single multiple|single married|one many
unique common|same different|similar different|near far|nearest farthest|nearer farther|present absent|presence absence
full empty|wet dry|clean dirty|smooth rough|flat steep|straight curved|regular irregular|linear nonlinear
discrete continuous|deterministic random|supervised unsupervised|reliable unreliable
precise coarse|fine coarse|accurate inaccurate|cause effect|question answer|problem solution
request response|request reply|theory practice|training testing|hardware software|simulated real
simulation reality|virtual real|physical virtual|stationary moving|rest motion|ahead behind|upstream downstream
prefix suffix|begins ends|ascending descending|increasing decreasing|upward downward|majority minority|maximise minimise
maximize minimize|strengthen weaken|improve worsen|improves worsens|cheaper dearer|advantage disadvantage|pro con
benefit drawback|strength weakness|friend enemy|attack defend|attack defence|guilty innocent|legal illegal|war peace
domestic foreign|urban rural|ancient modern|past future|temporary permanent|short-term long-term|lossy lossless
slower quicker|hidden shown|measured estimated|explicit implicit|required forbidden|sum difference
sum product|product quotient|row column|rows columns|width height|length width|numerator denominator|least most
latter former|subset superset|ancestor descendant|predecessor successor|creditor debtor|employer employee|import export
"""
