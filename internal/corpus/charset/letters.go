package charset

// Characters that are frequent in text of a language. They decide between encodings in which
// the same bytes are all valid.
const (
	latinPunctuation = "“”‘’„‚«»‹›–—…•·°§©®™€£¥±×÷½¼¾²³¹µ¿¡\u00a0\u00ad†‡№" // in many languages

	westLetters = "àâæçéèêëîïôùûüœáíóúñãõåäöøßÀÂÇÉÈÊÎÔÁÍÓÚÑÃÕÅÄÖØÜ" // of the largest languages of western Europe

	russianCommon  = "оеаинтсрвлкмдпуя"
	russianLetters = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё" + "ОЕАИНТСРВЛКМДПУЯЫЬГЗБЧЙХЖШЮЦЩЭФЪЁ"
	slavicLetters  = "іїєґўјљњћђџѓќѕІЇЄҐЎЈЉЊЋЂЏЃЌЅ"
	greekCommon    = "αοιετσνηυρπκμλςςίόά"
	greekLetters   = greekCommon + "ωδγχθφβξζψέήύώϊϋΐΰΑΟΙΕΤΣΝΗΥΡΠΚΜΛΩΔΓΧΘΦΒΞΖΨΆΈΉΊΌΎΏ"
	hebrewCommon   = "יוהלאתרמבשנ"
	hebrewLetters  = hebrewCommon + "חקדעטפסגכצזםןךףץ" + "ְֱֲֳִֵֶַָֹֻּ־׳״"
	arabicCommon   = "اليمنتروبةعدسف"
	arabicLetters  = arabicCommon + "هكحقجشطصخضذثزغظأإآئءؤىپچژگکیڤھہ،؛؟ـًٌٍَُِّْ"
	thaiCommon     = "านรอกเงมยลวดทสต่้ีัิ"
	thaiLetters    = thaiCommon + "ขคจชซญฎฏฐณถธนบปผฝพฟภมศษหฬฮฤะำึืุูโใไๆแฯ็์๐๑๒๓๔๕๖๗๘๙"

	kana = "あいうえおかがきぎくぐけげこごさざしじすずせぜそぞただちっつづてでとどなにぬねのはばぱひびぴふぶぷへべぺほぼぽまみむめもゃやゅゆょよらりるれろわをん" +
		"アイウエオカガキギクグケゲコゴサザシジスズセゼソタダチッツテデトドナニヌネノハバパヒビピフブプヘベペホボポマミムメモャヤュユョヨラリルレロワンヴー"
	kanji = "日本人大年一国会中上出生的者学分同行自時前長部業事場後方間東京地高性力化新定法内体物名数月見私気今来用作用発表文字入力選択設定" +
		"手無子何元社金開合意主立全動現不最下対経関世要通実信明問題理回度小代先目取書変更保存削除追加確認使使用可能指示画面番号"
	simplified = "的一是不了在人有我他这个中大来上国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三" +
		"已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市眼" +
		"体别处总才场师书比住员九笑性通目华报立马命张活难神数件安表原车白应路期叫死常提感金何更反合放做系计或司利受光王果亲界及今京务制解各任至清物台象记边共风战干接它许八特觉望直服毛林题建南度统色字请交爱让认算论百吃义科怎" +
		"元社术结六功指思非流每青管夫连远资队跟带花快条院变联权往展该领传近留红治决周保达办运武半候七必城父强步完革深区即求品士转量空甚众技轻程告江语英基派满式李息写呢识极令黄德收脸钱党倒未持取设始版双历越史商千片容研像找友" +
		"孩站广改议形委早房音火际则首单据导影失拿网香似斯专石若兵弟谁校读志飞观争究包组造落视济喜离虽坏兴切除件项码文件参数错误输入选项无法删除目录默认显示使用"
	traditional = "的一是不了在人有我他這個中大來上國到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可她裡後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手十用主行方又如前所本見經頭面公同三" +
		"已老從動兩長知民樣現分將外但身些與高意進把法此實回二理美點月明其種聲全工己話兒者向情部正名定女問力機給等幾很業最間新什打便位因重被走電四第門相次東政海口使教西再平真聽世氣信北少關並內加化由卻代軍產入先山五太水萬市眼" +
		"體別處總才場師書比住員九笑性通目華報立馬命張活難神數件安表原車白應路期叫死常提感金何更反合放做系計或司利受光王果親界及今京務制解各任至清物台象記邊共風戰幹接它許八特覺望直服毛林題建南度統色字請交愛讓認算論百吃義科怎" +
		"元社術結六功指思非流每青管夫連遠資隊跟帶花快條院變聯權往展該領傳近留紅治決週保達辦運武半候七必城父強步完革深區即求品士轉量空甚眾技輕程告江語英基檔案選項設定輸入錯誤目錄預設顯示無法刪除資料參數"
	hangul = "이다는의가을에고하지로기한사리서도어나시인자대있과수들정해그부전은를일으보제었주상만스여아니라면아요구원조장경미유성동용러비게공화오안려했발연공생무우행치물음라신문개국관실민분세회되모때소" +
		"습데입력할내진트방등열추재드마중없당선정파결와저번호출현식간계버위체된던적것거명까됩찾읽파일옵션오류설값표예외"
)

// language is a language in Latin letters: its letters beyond ASCII, and frequent words that
// have ASCII letters only, each between spaces.
type language struct{ letters, words string }

// westEuropean are the languages of Windows-1252.
func westEuropean() []language {
	return []language{
		{"àâæçéèêëîïôùûüœÿÀÂÆÇÉÈÊËÎÏÔÙÛÜŒŸ", " de la le les des et un une du en que est pour dans par sur ne pas au " +
			"il qui ce avec "},
		{"äöüßéàÄÖÜ", " der die das und nicht ist von den zu mit ein eine werden auf dem des im sie kann wird keine oder "},
		{"áéíóúñüÁÉÍÓÚÑÜ", " de la el los las en que no un una con por para del se es al su lo como "},
		{"àèéíïòóúüçÀÈÉÍÒÓÚÇ·", " de la el els les que no un una amb per del en es al i "},
		{"áâãàçéêíóôõúüÁÂÃÀÇÉÊÍÓÔÕÚ", " de o a os as do da em um uma que para com por se no na ao foi ou dos "},
		{"àèéìíòóùúÀÈÉÌÒÙ", " di il la che non un una per con del della in da si al le i dei "},
		{"åäöøæéèüÅÄÖØÆÉ", " och att det en som av inte med den til og er ikke for kan ett som fra i et at af de har ved "},
		{"áðéíóúýþæöÁÐÉÍÓÚÝÞÆÖ", " og er ekki sem um til en var af fyrir "},
		{"éëïöüèÉËÏÖÜ", " de het een van en in is niet voor dat op te met worden kan "},
		{"äöåšžÄÖÅŠŽ", " ja ei on se tai voi kun ole jos joka "},
	}
}

// centralEuropean are the languages of Windows-1250.
func centralEuropean() []language {
	return []language{
		{"ąćęłńóśźżĄĆĘŁŃÓŚŹŻ", " nie na w do z jest i o za po od dla lub przez tego jako "},
		{"áčďéěíňóřšťúůýžÁČĎÉĚÍŇÓŘŠŤÚŮÝŽ", " je na v a se ne nelze pro do z k od nebo jako soubor "},
		{"áäčďéíĺľňóôŕšťúýžÁČĎÉÍĽŇÓŠŤÚÝŽ", " je na v a sa nie pre do z k od alebo ako bol "},
		{"áéíóöőúüűÁÉÍÓÖŐÚÜŰ", " a az nem egy van hogy is ha vagy meg ez "},
		{"ăâîşţșțĂÂÎŞŢȘȚ", " de la nu un o este pentru cu din pe sau nu se care al "},
		{"čćđšžČĆĐŠŽ", " je na u i za se nije ne od da ili s kao v ni in pri iz ali "},
		{"äöüßÄÖÜ", " der die das und nicht ist von den zu mit ein eine "},
	}
}

func turkish() []language {
	return []language{{"çğıöşüâîûÇĞİÖŞÜ", " bir ve bu da de ile olarak kadar daha var "}}
}

func baltic() []language {
	return []language{
		{"ąčęėįšųūžĄČĘĖĮŠŲŪŽ", " ir nepavyko yra kad su nuo arba ne tai "},
		{"āčēģīķļņšūžĀČĒĢĪĶĻŅŠŪŽ", " un nav ir ar no par uz nevar vai ja "},
		{"äõöüšžÄÕÖÜŠŽ", " ja ei on see kui ning pole "},
	}
}
